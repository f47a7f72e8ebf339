/// A plan as text for the program that is to train by it: this one, or another trainer in its words
/// (core/launch_text.hpp) with what it cannot be told above.
#pragma once

#include <QWidget>

#include "core/plan.hpp"

class QComboBox;
class QLabel;
class QPlainTextEdit;

namespace meshwright::gui {

class HandOver : public QWidget {
  Q_OBJECT
 public:
  explicit HandOver(QWidget* parent = nullptr);
  /// `line`: the command of `meshwright simulate` that says the same.
  void show_plan(const Plan& plan, const QString& line);
  /// To the clipboard.
  void copy() const;
  QString text() const;
  QComboBox& targets() { return *target_; }

 private:
  void show_text();

  Plan plan_;
  QString line_;       ///< empty: no plan yet
  QComboBox* target_;  ///< this program, then LaunchTarget
  QLabel* not_said_;
  QPlainTextEdit* text_;
};

}  // namespace meshwright::gui
