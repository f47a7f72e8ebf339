/// Everything that the user can do, by name: for menus, command palette, key sheet, key
/// preferences, and for the test that walks over all of it.
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

struct ActionRequest {
  QString name;  ///< never translated, never changed: "view.fit"
  MenuId menu = MenuId::kView;
  QString text;                   ///< in the menu, with a mnemonic: tr("&Fit")
  QString hint;                   ///< one sentence for tooltip and palette; empty: the text
  QList<QKeySequence> keys = {};  ///< as shipped; the user's own come first
};

struct ActionEntry {
  QString name;
  MenuId menu = MenuId::kView;
  QList<QKeySequence> own_keys;  ///< as shipped
  QAction* action = nullptr;
};

class ActionSet : public QObject {
  Q_OBJECT
 public:
  explicit ActionSet(QWidget* window);

  /// The action works wherever the focus is in the window.
  QAction* add(const ActionRequest& request, const std::function<void()>& triggered);
  /// On or off.
  QAction* add_switch(const ActionRequest& request, bool is_on,
                      const std::function<void(bool)>& toggled);
  /// Takes an action that a widget has made, with its keys and its place of effect.
  void adopt(const QString& name, MenuId menu, QAction* action);

  const std::vector<ActionEntry>& entries() const { return entries_; }
  /// Null if there is none.
  QAction* find(const QString& name) const;
  /// The user's keys; actions that are not named have their own.
  void set_keys(const std::map<QString, QKeySequence>& keys);

 private:
  QWidget* window_;
  std::vector<ActionEntry> entries_;
};

}  // namespace meshwright::gui
