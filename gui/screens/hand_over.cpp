#include "gui/screens/hand_over.hpp"

#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QVBoxLayout>

#include "gui/text/qstring_of.hpp"
#include "models/launch/launch_text.hpp"

namespace meshwright::gui {

HandOver::HandOver(QWidget* parent)
    : QWidget(parent), target_(new QComboBox), not_said_(new QLabel), text_(new QPlainTextEdit) {
  auto* column = new QVBoxLayout(this);
  QHBoxLayout* row = add_row(*column);
  auto* label = new QLabel(tr("&For"));
  label->setBuddy(target_);
  target_->addItem("meshwright");
  for (int t = 0; t < kLaunchTargetCount; ++t)
    target_->addItem(qstring_of(name_of(static_cast<LaunchTarget>(t))));
  target_->setAccessibleName(tr("Training framework"));
  target_->setToolTip(tr("Training framework and version to launch this plan with"));
  auto* copy_button = new QPushButton(tr("C&opy"));
  copy_button->setToolTip(tr("Copies the text below to the clipboard"));
  row->addWidget(label);
  row->addWidget(target_, 1);
  row->addWidget(copy_button);
  not_said_->setProperty("role", "problem");
  not_said_->setWordWrap(true);
  not_said_->hide();
  column->addWidget(not_said_);
  column->addWidget(text_, 1);
  text_->setReadOnly(true);
  text_->setAccessibleName(tr("Launch command"));
  connect(target_, &QComboBox::currentIndexChanged, this, &HandOver::show_text);
  connect(copy_button, &QPushButton::clicked, this, &HandOver::copy);
}

void HandOver::show_plan(const Plan& plan, const QString& line) {
  plan_ = plan;
  line_ = line;
  show_text();
}

void HandOver::show_text() {
  if (line_.isEmpty()) return;
  QStringList missing;
  if (target_->currentIndex() == 0) {
    text_->setPlainText(
        tr("# simulate this plan\n%1\n\n# run it on this machine, if it is small enough\n%2")
            .arg(line_, QString(line_).replace("meshwright simulate", "meshwright run")));
  } else {
    const LaunchText launch =
        launch_text(static_cast<LaunchTarget>(target_->currentIndex() - 1), plan_);
    for (const std::string& one : launch.unsupported) missing += "⚠ " + QString::fromStdString(one);
    text_->setPlainText(QString::fromStdString(launch.text));
  }
  not_said_->setText(tr("Not supported by this framework:") + "\n" + missing.join("\n"));
  not_said_->setVisible(!missing.isEmpty());
}

QString HandOver::text() const { return text_->toPlainText(); }

void HandOver::copy() const { QApplication::clipboard()->setText(text()); }

}  // namespace meshwright::gui
