#include "gui/window/error_dialog.hpp"

#include <QApplication>
#include <QClipboard>
#include <QDialogButtonBox>
#include <QLabel>
#include <QPushButton>
#include <QTextBrowser>
#include <QVBoxLayout>

namespace meshwright::gui {
namespace {

QString html_of(const Diagnostic& diagnostic) {
  const auto escaped = [](const std::string& text) {
    return QString::fromStdString(text).toHtmlEscaped();
  };
  QString html = QString("<p><code>%1</code><br><b>%2</b>")
                     .arg(escaped(diagnostic.where), escaped(diagnostic.what));
  if (!diagnostic.hint.empty())
    html += "<br>" + ErrorDialog::tr("Hint: %1").arg(escaped(diagnostic.hint));
  return html + "</p>";
}

QString opening(JobFailure::Kind kind) {
  switch (kind) {
    case JobFailure::Kind::kInput:
      return ErrorDialog::tr("Invalid input");
    case JobFailure::Kind::kEnvironment:
      return ErrorDialog::tr("System error");
    case JobFailure::Kind::kInternal:
      break;
  }
  return ErrorDialog::tr("Internal error. Please report it with the text below.");
}

}  // namespace

ErrorDialog::ErrorDialog(const QString& title, const JobFailure& failure, QWidget* parent)
    : QDialog(parent) {
  setWindowTitle(title);
  auto* column = new QVBoxLayout(this);
  auto* head = new QLabel(opening(failure.kind));
  head->setProperty("role", "heading");
  column->addWidget(head);
  auto* body = new QTextBrowser;
  QString html;
  for (const Diagnostic& diagnostic : failure.diagnostics) {
    html += html_of(diagnostic);
    text_ += QString::fromStdString(format(diagnostic));
  }
  body->setHtml(html);
  body->setAccessibleName(tr("Error details"));
  column->addWidget(body);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close);
  buttons->button(QDialogButtonBox::Close)->setText(tr("Close"));
  QPushButton* copy = buttons->addButton(tr("&Copy text"), QDialogButtonBox::ActionRole);
  connect(copy, &QPushButton::clicked, this, [this] { QApplication::clipboard()->setText(text_); });
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  column->addWidget(buttons);
  constexpr QSize kUsual(620, 320);
  resize(kUsual);
}

}  // namespace meshwright::gui
