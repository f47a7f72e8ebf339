/// Asks for the two timelines of a comparison, each in a field of its own.
#pragma once

#include <QDialog>

class QFormLayout;
class QLineEdit;
class QPushButton;

namespace meshwright::gui {

class CompareDialog : public QDialog {
  Q_OBJECT
 public:
  explicit CompareDialog(QWidget* parent = nullptr);

 Q_SIGNALS:
  void chosen(const QString& predicted, const QString& measured);

 private:
  QLineEdit* add_field(QFormLayout& form, const QString& label, const char* name);
  QLineEdit *predicted_, *measured_;
  QPushButton* compare_;
};

}  // namespace meshwright::gui
