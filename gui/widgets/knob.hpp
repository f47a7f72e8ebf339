/// Number inputs with a slider, an edit field and an inline problem message.
#pragma once

#include <QLabel>
#include <QSlider>
#include <QSpinBox>
#include <QString>
#include <QWidget>
#include <vector>

#include "core/base/units.hpp"

namespace meshwright::gui {

/// Texts shown with the number.
struct KnobText {
  QString label;   ///< "Micro-batches"
  QString symbol;  ///< the symbol used in papers: "m"
  QString hint;    ///< tooltip
};

/// The slider stops at common values only; the spin box accepts any value in range, so that unusual
/// cases (m < p) can be tried and are explained.
class CountKnob : public QWidget {
  Q_OBJECT
 public:
  CountKnob(const KnobText& text, std::vector<int> stops, int most, QWidget* parent = nullptr);
  /// Sets the value without emitting a signal.
  void show_value(int value);
  /// Shows an inline message; empty hides it.
  void show_problem(const QString& problem);
  int value() const { return box_->value(); }
  QSlider* slider() { return slider_; }
  QSpinBox* box() { return box_; }

 Q_SIGNALS:
  void moved(int value);
  /// The slider was released or editing finished: the gesture is over.
  void settled();

 private:
  std::vector<int> stops_;
  QSlider* slider_;
  QSpinBox* box_;
  QLabel* problem_;
};

/// A time on a logarithmic slider from one microsecond to ten seconds, with zero at its left end.
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

/// Values from 1 to `most`: every value up to 16, then in steps of about 1/16.
std::vector<int> count_stops(int most);
/// 1, 2, 4, … up to `most`.
std::vector<int> power_stops(int most);

}  // namespace meshwright::gui
