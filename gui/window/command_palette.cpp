#include "gui/window/command_palette.hpp"

#include <QCoreApplication>
#include <QHeaderView>
#include <QKeyEvent>
#include <QLineEdit>
#include <QPointer>
#include <QTreeWidget>
#include <QVBoxLayout>

#include "gui/widgets/actions.hpp"

namespace meshwright::gui {
namespace {

/// True if the text contains every word typed.
bool matches(const QString& text, const QString& typed) {
  for (const QString& word : typed.split(' ', Qt::SkipEmptyParts))
    if (!text.contains(word, Qt::CaseInsensitive)) return false;
  return true;
}

}  // namespace

CommandPalette::CommandPalette(ActionSet& actions, QWidget* parent)
    : QDialog(parent, Qt::Popup), actions_(actions), text_(new QLineEdit), list_(new QTreeWidget) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(6, 6, 6, 6);
  text_->setPlaceholderText(tr("Type a command"));
  text_->setAccessibleName(tr("Command"));
  text_->installEventFilter(this);
  list_->setHeaderHidden(true);
  list_->setColumnCount(3);
  list_->setRootIsDecorated(false);
  list_->setFocusPolicy(Qt::NoFocus);
  list_->header()->setStretchLastSection(false);
  list_->header()->setSectionResizeMode(0, QHeaderView::ResizeToContents);
  list_->header()->setSectionResizeMode(1, QHeaderView::Stretch);
  list_->header()->setSectionResizeMode(2, QHeaderView::ResizeToContents);
  column->addWidget(text_);
  column->addWidget(list_);
  connect(text_, &QLineEdit::textChanged, this, &CommandPalette::filter);
  connect(list_, &QTreeWidget::itemClicked, this, [this] { run_chosen(); });
  filter({});
  constexpr QSize kUsual(680, 420);
  resize(kUsual);
  if (parent != nullptr)
    move(parent->mapToGlobal(QPoint((parent->width() - kUsual.width()) / 2, 70)));
  text_->setFocus();
}

void CommandPalette::filter(const QString& text) {
  list_->clear();
  for (const ActionEntry& entry : actions_.entries()) {
    const QAction& action = *entry.action;
    if (!action.isEnabled() || !matches(action.iconText() + " " + action.toolTip(), text)) continue;
    const QString hint = action.toolTip() == action.iconText() ? QString() : action.toolTip();
    auto* item = new QTreeWidgetItem(
        {action.iconText(), hint, action.shortcut().toString(QKeySequence::NativeText)});
    item->setForeground(1, palette().placeholderText());
    item->setData(0, Qt::UserRole, entry.name);
    list_->addTopLevelItem(item);
  }
  list_->setCurrentItem(list_->topLevelItem(0));
}

void CommandPalette::run_chosen() {
  const QTreeWidgetItem* item = list_->currentItem();
  if (item == nullptr) return;
  const QPointer<QAction> action = actions_.find(item->data(0, Qt::UserRole).toString());
  accept();
  if (action) action->trigger();
}

bool CommandPalette::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::KeyPress) {
    auto* key = static_cast<QKeyEvent*>(event);
    switch (key->key()) {
      case Qt::Key_Return:
      case Qt::Key_Enter:
        run_chosen();
        return true;
      case Qt::Key_Up:
      case Qt::Key_Down:
      case Qt::Key_PageUp:
      case Qt::Key_PageDown:
        QCoreApplication::sendEvent(list_, event);
        return true;
      default:
        break;
    }
  }
  return QDialog::eventFilter(watched, event);
}

}  // namespace meshwright::gui
