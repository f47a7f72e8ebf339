#include "gui/screens/compare_dialog.hpp"

#include <QDialogButtonBox>
#include <QFileDialog>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QVBoxLayout>

#include "gui/widgets/arrange.hpp"

namespace meshwright::gui {

CompareDialog::CompareDialog(QWidget* parent) : QDialog(parent) {
  setWindowTitle(tr("Compare two traces"));
  auto* column = new QVBoxLayout(this);
  auto* form = new QFormLayout;
  column->addLayout(form);
  predicted_ = add_field(*form, tr("&Predicted (or earlier) trace"), "compare.predicted");
  measured_ = add_field(*form, tr("&Measured (or later) trace"), "compare.measured");
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Cancel);
  compare_ = buttons->addButton(tr("&Compare"), QDialogButtonBox::AcceptRole);
  compare_->setEnabled(false);
  column->addWidget(buttons);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  connect(buttons, &QDialogButtonBox::accepted, this, [this] {
    Q_EMIT chosen(predicted_->text(), measured_->text());
    accept();
  });
}

QLineEdit* CompareDialog::add_field(QFormLayout& form, const QString& label, const char* name) {
  QHBoxLayout* row = make_row();
  auto* field = new QLineEdit;
  field->setObjectName(name);
  field->setAccessibleName(QString(label).remove('&'));
  constexpr int kFieldWidth = 360;
  field->setMinimumWidth(kFieldWidth);
  auto* browse = new QPushButton(tr("Browse…"));
  browse->setAccessibleName(tr("Browse for: %1").arg(field->accessibleName()));
  row->addWidget(field, 1);
  row->addWidget(browse);
  auto* words = new QLabel(label);
  words->setBuddy(field);
  form.addRow(words, row->parentWidget());
  connect(field, &QLineEdit::textChanged, this, [this] {
    compare_->setEnabled(!predicted_->text().isEmpty() && !measured_->text().isEmpty());
  });
  connect(browse, &QPushButton::clicked, this, [this, field] {
    const QString path =
        QFileDialog::getOpenFileName(this, field->accessibleName(), field->text(),
                                     tr("Traces (*.pftrace *.json *.json.gz);;All files (*)"));
    if (!path.isEmpty()) field->setText(path);
  });
  return field;
}

}  // namespace meshwright::gui
