/// The launch command or config file of a plan, for Meshwright or another training framework
/// (models/launch/launch_text.hpp), with a list of what that framework cannot express.
#pragma once

#include <QWidget>

#include "core/plan/plan.hpp"

class QComboBox;
class QLabel;
class QPlainTextEdit;

namespace meshwright::gui {

class HandOver : public QWidget {
  Q_OBJECT
 public:
  explicit HandOver(QWidget* parent = nullptr);
  /// `line`: the equivalent `meshwright simulate` command.
  void show_plan(const Plan& plan, const QString& line);
  /// Copies the text to the clipboard.
  void copy() const;
  QString text() const;
  QComboBox& targets() { return *target_; }

 private:
  void show_text();

  Plan plan_;
  QString line_;       ///< empty: no plan yet
  QComboBox* target_;  ///< Meshwright, then every LaunchTarget
  QLabel* not_said_;
  QPlainTextEdit* text_;
};

}  // namespace meshwright::gui
