/// All user actions by name: for menus, the command palette, the shortcut list, the shortcut
/// preferences and the test that triggers every one of them.
#pragma once

#include <QAction>
#include <QKeySequence>
#include <QObject>
#include <QString>
#include <functional>
#include <map>
#include <vector>

namespace meshwright::gui {

enum class MenuId : std::uint8_t { kFile, kEdit, kView, kGo, kPlan, kRun, kTools, kHelp };
inline constexpr int kMenuCount = 8;

/// Shortcuts from texts or standard keys.
template <class... Key>
QList<QKeySequence> shortcuts(const Key&... keys) {
  return {QKeySequence(keys)...};
}

struct ActionRequest {
  QString name;  ///< stable and never translated: "view.fit"
  MenuId menu = MenuId::kView;
  QString text;                   ///< in the menu, with a mnemonic: tr("&Fit")
  QString hint;                   ///< one sentence for tooltip and palette; defaults to the text
  QList<QKeySequence> keys = {};  ///< default shortcuts; the user's own replace them
};

struct ActionEntry {
  QString name;
  MenuId menu = MenuId::kView;
  QList<QKeySequence> own_keys;  ///< default shortcuts
  QAction* action = nullptr;
};

class ActionSet : public QObject {
  Q_OBJECT
 public:
  explicit ActionSet(QWidget* window);

  /// The shortcut works wherever the keyboard focus is in the window.
  QAction* add(const ActionRequest& request, const std::function<void()>& triggered);
  /// Adds a checkable action.
  QAction* add_switch(const ActionRequest& request, bool is_on,
                      const std::function<void(bool)>& toggled);
  /// Registers an action that a widget created; its shortcuts and their context stay as they are.
  void adopt(const QString& name, MenuId menu, QAction* action);

  const std::vector<ActionEntry>& entries() const { return entries_; }
  /// Null if no action has this name.
  QAction* find(const QString& name) const;
  /// Applies the user's shortcuts; actions not in `keys` get their defaults.
  void set_keys(const std::map<QString, QKeySequence>& keys);

 private:
  QWidget* window_;
  std::vector<ActionEntry> entries_;
};

}  // namespace meshwright::gui
