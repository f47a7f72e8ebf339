/// Adds the actions that are available everywhere; screens add their own.
#include <QApplication>
#include <QDockWidget>
#include <QFileDialog>
#include <QMenuBar>
#include <QToolBar>
#include <QToolButton>
#include <algorithm>
#include <initializer_list>
#include <map>

#include "gui/screens/welcome_screen.hpp"
#include "gui/widgets/actions.hpp"
#include "gui/widgets/arrange.hpp"
#include "gui/widgets/theme.hpp"
#include "gui/window/command_palette.hpp"
#include "gui/window/key_sheet.hpp"
#include "gui/window/main_window.hpp"
#include "gui/window/preferences_dialog.hpp"
#include "gui/window/scenario_panel.hpp"

namespace meshwright::gui {
namespace {

/// The submenu of actions that would make a menu too long; empty for none.
QString submenu_of(const QString& name, MenuId menu) {
  const auto starts_with_any = [&](std::initializer_list<const char*> prefixes) {
    return std::any_of(prefixes.begin(), prefixes.end(),
                       [&](const char* prefix) { return name.startsWith(QLatin1String(prefix)); });
  };
  if (name.startsWith("example.")) return MainWindow::tr("&Examples");
  if (menu == MenuId::kEdit && name.startsWith("explore.copy-")) return MainWindow::tr("&Copy");
  if (menu != MenuId::kView) return {};
  if (starts_with_any({"view.dock", "view.toolbar"})) return MainWindow::tr("&Panels");
  if (starts_with_any({"timeline.zoom", "timeline.pan", "timeline.all", "timeline.end",
                       "timeline.fit", "timeline.row", "timeline.page"}))
    return MainWindow::tr("&Zoom and pan");
  if (starts_with_any({"timeline.next", "timeline.previous", "timeline.follow", "timeline.area",
                       "timeline.mark", "timeline.clear"}))
    return MainWindow::tr("&Select and follow");
  if (starts_with_any({"timeline.search", "timeline.go-to"})) return {};
  return starts_with_any({"timeline.", "explore."}) ? MainWindow::tr("Sho&w") : QString();
}

}  // namespace

void MainWindow::build_actions() {
  add_file_actions();
  add_edit_actions();
  add_view_actions();
  add_go_actions();
  add_help_actions();
  for (Screen* screen : screens_) screen->add_actions(*actions_);
  actions_->add({"file.quit", MenuId::kFile, tr("&Quit"),
                 tr("Stops all jobs and closes the window"), shortcuts("Ctrl+Q")},
                [this] { close(); });
  build_toolbar();
  fill_menus();
}

void MainWindow::add_file_actions() {
  actions_->add({"file.open", MenuId::kFile, tr("&Open…"),
                 tr("Opens plans, traces, schedules, calibrations, models or clusters"),
                 shortcuts(QKeySequence::Open)},
                [this] {
                  workbench_.open(QFileDialog::getOpenFileNames(
                      this, tr("Open"), {},
                      tr("Meshwright files (%1);;All files (*)")
                          .arg(QString::fromStdString(openable_patterns()))));
                });
}

void MainWindow::add_edit_actions() {
  QUndoStack& stack = workbench_.scenario().undo_stack();
  QAction* undo =
      actions_->add({"edit.undo", MenuId::kEdit, tr("&Undo"),
                     tr("Undoes the last change to the scenario"), shortcuts(QKeySequence::Undo)},
                    [&stack] { stack.undo(); });
  QAction* redo =
      actions_->add({"edit.redo", MenuId::kEdit, tr("&Redo"), tr("Restores the last undone change"),
                     shortcuts("Ctrl+Y", "Ctrl+Shift+Z")},
                    [&stack] { stack.redo(); });
  undo->setEnabled(false);
  redo->setEnabled(false);
  connect(&stack, &QUndoStack::canUndoChanged, undo, &QAction::setEnabled);
  connect(&stack, &QUndoStack::canRedoChanged, redo, &QAction::setEnabled);
  connect(&stack, &QUndoStack::undoTextChanged, undo,
          [undo](const QString& text) { undo->setText(tr("&Undo %1").arg(text)); });
  connect(&stack, &QUndoStack::redoTextChanged, redo,
          [redo](const QString& text) { redo->setText(tr("&Redo %1").arg(text)); });
  actions_->add(
      {"edit.next-schedule", MenuId::kEdit, tr("&Next schedule"),
       tr("Switches to the next schedule that this scenario allows"), shortcuts("Alt+Right")},
      [this] { panel_->step_schedule(1); });
  actions_->add(
      {"edit.previous-schedule", MenuId::kEdit, tr("&Previous schedule"),
       tr("Switches to the previous schedule that this scenario allows"), shortcuts("Alt+Left")},
      [this] { panel_->step_schedule(-1); });
  actions_->add(
      {"edit.preferences", MenuId::kEdit, tr("Pre&ferences…"),
       tr("Appearance, units, shortcuts, language"), shortcuts("Ctrl+,")},
      [this] { show_dialog(new PreferencesDialog(workbench_.preferences(), *actions_, this)); });
}

void MainWindow::add_view_actions() {
  const std::pair<QDockWidget*, const char*> docks[]{{scenario_dock_, "Ctrl+Alt+1"},
                                                     {inspector_dock_, "Ctrl+Alt+2"},
                                                     {problems_dock_, "Ctrl+Alt+3"},
                                                     {log_dock_, "Ctrl+Alt+4"},
                                                     {jobs_dock_, "Ctrl+Alt+5"}};
  for (const auto& [dock, keys] : docks) {
    QAction* action = dock->toggleViewAction();
    QList<QKeySequence> all{QKeySequence(keys)};
    if (dock == inspector_dock_) all += QKeySequence("Q");
    action->setShortcuts(all);
    addAction(action);
    actions_->adopt("view." + dock->objectName(), MenuId::kView, action);
  }
  actions_->add({"view.theme", MenuId::kView, tr("Next t&heme"),
                 tr("Switches between light, dark and high contrast"), shortcuts("T")},
                [this] {
                  PreferenceValues values = workbench_.preferences().values();
                  const ThemeChoice now = resolved(values.theme);
                  values.theme = now == ThemeChoice::kLight  ? ThemeChoice::kDark
                                 : now == ThemeChoice::kDark ? ThemeChoice::kHighContrast
                                                             : ThemeChoice::kLight;
                  workbench_.preferences().set(values);
                });
  actions_->add({"view.lecture", MenuId::kView, tr("&Lecture mode"),
                 tr("Shows schedules on one time axis with large labels and a play head, without "
                    "panels; again: back to the previous screen"),
                 shortcuts("F5")},
                [this] { toggle_lecture(); });
  actions_->add_switch(
      {"view.full-screen", MenuId::kView, tr("&Full screen"), {}, shortcuts("F11")}, false,
      [this](bool on) { on ? showFullScreen() : showNormal(); });
}

void MainWindow::toggle_lecture() {
  const QString lecture = "lecture", now = current_screen()->traits().name;
  if (now != lecture) before_lecture_ = now;
  show_screen(now == lecture ? before_lecture_ : lecture);
}

void MainWindow::add_go_actions() {
  int number = 0;
  for (Screen* screen : screens_) {
    ++number;
    constexpr int kDigits = 10;
    const QString digit = QString::number(number % kDigits);
    const QList<QKeySequence> keys =
        shortcuts(number <= kDigits ? digit : "Ctrl+Alt+Shift+" + digit);
    actions_->add({"go." + screen->traits().name, MenuId::kGo, screen->traits().title,
                   tr("Shows the %1 screen").arg(screen->traits().title), keys},
                  [this, name = screen->traits().name] { show_screen(name); });
  }
  actions_->add({"go.scenario", MenuId::kGo, tr("Scenario &parameters"),
                 tr("Moves the keyboard focus to the scenario panel"), shortcuts("Ctrl+K")},
                [this] {
                  scenario_dock_->show();
                  panel_->schedules()->setFocus(Qt::ShortcutFocusReason);
                });
}

void MainWindow::add_help_actions() {
  actions_->add({"help.palette", MenuId::kHelp, tr("&Command palette…"),
                 tr("Finds and runs any action by name"), shortcuts("Ctrl+Shift+P")},
                [this] { show_dialog(new CommandPalette(*actions_, this)); });
  actions_->add({"help.keys", MenuId::kHelp, tr("&Keyboard shortcuts"),
                 tr("Lists all keyboard shortcuts"), shortcuts("?", "F1")},
                [this] { show_dialog(new KeySheet(*actions_, this)); });
}

void MainWindow::fill_menus() {
  const QString titles[kMenuCount]{tr("&File"), tr("&Edit"), tr("&View"),  tr("&Go"),
                                   tr("&Plan"), tr("&Run"),  tr("&Tools"), tr("&Help")};
  for (int m = 0; m < kMenuCount; ++m) {
    QMenu* menu = nullptr;
    std::map<QString, QMenu*> submenus;
    for (const ActionEntry& entry : actions_->entries()) {
      if (static_cast<int>(entry.menu) != m) continue;
      if (menu == nullptr) {
        menu = menuBar()->addMenu(titles[m]);
        menu->setToolTipsVisible(true);
      }
      const QString group = submenu_of(entry.name, entry.menu);
      if (group.isEmpty()) {
        menu->addAction(entry.action);
        continue;
      }
      QMenu*& submenu = submenus[group];
      if (submenu == nullptr) {
        submenu = menu->addMenu(group);
        submenu->setToolTipsVisible(true);
      }
      submenu->addAction(entry.action);
    }
  }
}

/// The most used timeline actions, with shorter labels than in the menus.
void MainWindow::build_toolbar() {
  toolbar_ = addToolBar(tr("Toolbar"));
  toolbar_->setObjectName("toolbar");
  toolbar_->setMovable(false);
  toolbar_->toggleViewAction()->setShortcut(QKeySequence("Ctrl+Alt+0"));
  actions_->adopt("view.toolbar", MenuId::kView, toolbar_->toggleViewAction());
  const auto add = [this](const char* name, const QString& text) {
    QAction* action = actions_->find(name);
    auto* button = new QToolButton;
    button->setText(text);
    button->setObjectName(QString("button.%1").arg(name));
    button->setCheckable(action->isCheckable());
    const auto follow = [button, action] {
      button->setEnabled(action->isEnabled());
      button->setChecked(action->isChecked());
      const QString keys = action->shortcut().toString(QKeySequence::NativeText);
      button->setToolTip(keys.isEmpty() ? action->toolTip()
                                        : QString("%1 (%2)").arg(action->toolTip(), keys));
    };
    follow();
    connect(action, &QAction::changed, button, follow);
    connect(button, &QToolButton::clicked, action, [action, follow] {
      action->trigger();
      follow();
    });
    toolbar_->addWidget(button);
  };
  add("edit.undo", tr("Undo"));
  add("edit.redo", tr("Redo"));
  toolbar_->addSeparator();
  add("edit.previous-schedule", tr("◀ Schedule"));
  add("edit.next-schedule", tr("Schedule ▶"));
  add("explore.snapshot", tr("Pin as A"));
  toolbar_->addSeparator();
  add("timeline.all", tr("Show all"));
  add("timeline.fit", tr("Fit"));
  add("timeline.next-bubble", tr("Next bubble"));
  toolbar_->addSeparator();
  add("timeline.critical-path", tr("Critical path"));
  add("explore.causes", tr("Causes"));
  add("explore.arrows", tr("Arrows"));
  add("explore.counters", tr("Counters"));
  add("explore.table", tr("Table"));
  add("timeline.order", tr("Sort"));
  toolbar_->addSeparator();
  add("explore.export", tr("Export"));
  add("view.theme", tr("Theme"));
}

}  // namespace meshwright::gui
