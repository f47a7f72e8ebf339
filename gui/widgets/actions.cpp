#include "gui/widgets/actions.hpp"

#include <QRegularExpression>
#include <QWidget>

#include "core/base/check.hpp"

namespace meshwright::gui {
namespace {

/// Translations into non-Latin scripts append the mnemonic to the text: "打开(&O)…".
QString without_mnemonic(QString text) {
  static const QRegularExpression kKeyBehind(R"(\s*\(&.\))");
  return text.remove(kKeyBehind).remove('&').remove("…");
}

}  // namespace

ActionSet::ActionSet(QWidget* window) : QObject(window), window_(window) {}

QAction* ActionSet::add(const ActionRequest& request, const std::function<void()>& triggered) {
  auto* action = new QAction(request.text, this);
  action->setIconText(without_mnemonic(request.text));
  action->setToolTip(request.hint.isEmpty() ? action->iconText() : request.hint);
  action->setStatusTip(action->toolTip());
  action->setShortcuts(request.keys);
  connect(action, &QAction::triggered, this, [triggered] { triggered(); });
  window_->addAction(action);
  adopt(request.name, request.menu, action);
  return action;
}

QAction* ActionSet::add_switch(const ActionRequest& request, bool is_on,
                               const std::function<void(bool)>& toggled) {
  QAction* action = add(request, [] {});
  action->setCheckable(true);
  action->setChecked(is_on);
  connect(action, &QAction::toggled, this, toggled);
  return action;
}

void ActionSet::adopt(const QString& name, MenuId menu, QAction* action) {
  MW_CHECK(find(name) == nullptr);
  action->setObjectName(name);
  entries_.push_back({name, menu, action->shortcuts(), action});
}

QAction* ActionSet::find(const QString& name) const {
  for (const ActionEntry& entry : entries_)
    if (entry.name == name) return entry.action;
  return nullptr;
}

void ActionSet::set_keys(const std::map<QString, QKeySequence>& keys) {
  for (const ActionEntry& entry : entries_) {
    const auto own = keys.find(entry.name);
    entry.action->setShortcuts(own == keys.end() ? entry.own_keys
                                                 : QList<QKeySequence>{own->second});
  }
}

}  // namespace meshwright::gui
