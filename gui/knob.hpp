/// A number that can be slid, typed and complained about in place.
#pragma once

#include <QLabel>
#include <QSlider>
#include <QSpinBox>
#include <QString>
#include <QWidget>
#include <vector>

#include "core/units.hpp"

namespace meshwright::gui {

/// What all knobs show beside their number.
struct KnobText {
  QString label;   ///< "Micro-batches"
  QString symbol;  ///< as papers write it: "m"
  QString hint;    ///< tooltip
};

/// The slider has stops at useful values; the box takes any value in range, so that what a slider
/// would hide (m < p) can be tried and is explained.
class CountKnob : public QWidget {
  Q_OBJECT
 public:
  CountKnob(const KnobText& text, std::vector<int> stops, int most, QWidget* parent = nullptr);
  /// Without a signal.
  void show_value(int value);
  /// Empty: none.
  void show_problem(const QString& problem);
  int value() const { return box_->value(); }
  QSlider* slider() { return slider_; }
  QSpinBox* box() { return box_; }

 Q_SIGNALS:
  void moved(int value);
  /// The slider was let go or the box was left: the gesture is over.
  void settled();

 private:
  std::vector<int> stops_;
  QSlider* slider_;
  QSpinBox* box_;
  QLabel* problem_;
};

/// A time on a logarithmic slider from a microsecond to ten seconds, and zero at its left end.
class TimeKnob : public QWidget {
  Q_OBJECT
 public:
  explicit TimeKnob(const KnobText& text, QWidget* parent = nullptr);
  void show_value(Ticks value);
  Ticks value() const { return value_; }
  QSlider* slider() { return slider_; }

 Q_SIGNALS:
  void moved(qint64 ticks);
  void settled();

 private:
  void take_text();
  Ticks value_;
  QSlider* slider_;
  QLineEdit* edit_;
};

/// 1 to `most`, every value up to 16, then in steps of about a sixteenth.
std::vector<int> count_stops(int most);
/// 1, 2, 4, … up to `most`.
std::vector<int> power_stops(int most);

}  // namespace meshwright::gui
