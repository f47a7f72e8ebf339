/// Shows diagnostics: where, what, and a hint. The whole text can be copied.
#pragma once

#include <QDialog>

#include "gui/session/jobs.hpp"

namespace meshwright::gui {

class ErrorDialog : public QDialog {
  Q_OBJECT
 public:
  ErrorDialog(const QString& title, const JobFailure& failure, QWidget* parent = nullptr);
  /// As `meshwright` prints it.
  QString text() const { return text_; }

 private:
  QString text_;
};

}  // namespace meshwright::gui
