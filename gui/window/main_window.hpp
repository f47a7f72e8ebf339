/// The main window: a tab per screen in the center, the scenario panel on the left, the inspector
/// on the right; problems, log and jobs at the bottom. Depends on the Screen interface only.
#pragma once

#include <QMainWindow>
#include <vector>

#include "gui/screens/screen.hpp"
#include "gui/session/workbench.hpp"

class QDockWidget;
class QLabel;
class QMenu;
class QStackedWidget;
class QTabBar;
class QToolBar;

namespace meshwright::gui {

class ActionSet;
class JobList;
class KpiStrip;
class LogList;
class ProblemList;
class ScenarioPanel;

class MainWindow : public QMainWindow {
  Q_OBJECT
 public:
  explicit MainWindow(Workbench& workbench);
  ~MainWindow() override;

  const std::vector<Screen*>& screens() const { return screens_; }
  /// Null if no screen has this name.
  Screen* find_screen(const QString& name) const;
  Screen* current_screen() const;
  ActionSet& actions() { return *actions_; }
  ScenarioPanel& scenario_panel() { return *panel_; }
  /// True if no work is pending that a screenshot should wait for.
  bool is_settled();

 public Q_SLOTS:
  void show_screen(const QString& name);

 protected:
  void closeEvent(QCloseEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;

 private:
  void build_center();
  void build_docks();
  void build_actions();
  void add_file_actions();
  void add_edit_actions();
  void add_view_actions();
  void add_go_actions();
  void add_help_actions();
  void toggle_lecture();
  void fill_menus();
  void build_toolbar();
  void connect_workbench();
  void bring_to_front(int index);
  void show_simulation();
  void take_file(const std::shared_ptr<const OpenedFile>& file);
  void show_failure(const QString& title, const JobFailure& failure);
  void apply_preferences();
  void restore_state();
  QDockWidget* add_dock(const QString& name, const QString& title, Qt::DockWidgetArea area,
                        QWidget* content);

  Workbench& workbench_;
  ActionSet* actions_;
  std::vector<Screen*> screens_;
  QTabBar* tabs_;
  QStackedWidget *stack_, *inspectors_;
  KpiStrip* kpis_;
  ScenarioPanel* panel_;
  ProblemList* problems_;
  LogList* log_;
  JobList* job_list_;
  QDockWidget *scenario_dock_, *inspector_dock_, *problems_dock_, *log_dock_, *jobs_dock_;
  QLabel* status_;
  QToolBar* toolbar_;
  QString before_lecture_ = "explore";  ///< the screen to which lecture mode returns
};

}  // namespace meshwright::gui
