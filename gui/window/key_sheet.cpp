#include "gui/window/key_sheet.hpp"

#include <QDialogButtonBox>
#include <QPushButton>
#include <QTextBrowser>
#include <QVBoxLayout>

#include "gui/widgets/actions.hpp"

namespace meshwright::gui {
namespace {

QString keys_html(const QAction& action) {
  QStringList keys;
  for (const QKeySequence& sequence : action.shortcuts())
    keys += "<b>" + sequence.toString(QKeySequence::NativeText).toHtmlEscaped() + "</b>";
  return keys.join(KeySheet::tr(" or "));
}

}  // namespace

KeySheet::KeySheet(const ActionSet& actions, QWidget* parent) : QDialog(parent) {
  setWindowTitle(tr("Keyboard shortcuts"));
  const QString titles[kMenuCount]{tr("File"), tr("Edit"), tr("View"),  tr("Go"),
                                   tr("Plan"), tr("Run"),  tr("Tools"), tr("Help")};
  QString html;
  for (int m = 0; m < kMenuCount; ++m) {
    QString rows;
    for (const ActionEntry& entry : actions.entries())
      if (static_cast<int>(entry.menu) == m && !entry.action->shortcuts().isEmpty())
        rows += QString("<tr><td style='padding-right:18px'>%1</td><td>%2</td></tr>")
                    .arg(keys_html(*entry.action), entry.action->iconText().toHtmlEscaped());
    if (!rows.isEmpty()) html += QString("<h3>%1</h3><table>%2</table>").arg(titles[m], rows);
  }
  auto* column = new QVBoxLayout(this);
  auto* sheet = new QTextBrowser;
  sheet->setHtml(html);
  sheet->setAccessibleName(tr("Keyboard shortcuts"));
  column->addWidget(sheet);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close);
  buttons->button(QDialogButtonBox::Close)->setText(tr("Close"));
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  column->addWidget(buttons);
  constexpr QSize kUsual(560, 720);
  resize(kUsual);
}

}  // namespace meshwright::gui
