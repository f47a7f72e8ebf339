#include "gui/window/main_window.hpp"

#include <QApplication>
#include <QCloseEvent>
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QLabel>
#include <QMenuBar>
#include <QMimeData>
#include <QSettings>
#include <QStackedWidget>
#include <QStatusBar>
#include <QTabBar>
#include <QToolBar>
#include <QVBoxLayout>

#include "gui/screens/screens.hpp"
#include "gui/screens/welcome_screen.hpp"
#include "gui/text/number_text.hpp"
#include "gui/widgets/actions.hpp"
#include "gui/widgets/arrange.hpp"
#include "gui/widgets/theme.hpp"
#include "gui/window/error_dialog.hpp"
#include "gui/window/job_list.hpp"
#include "gui/window/job_progress.hpp"
#include "gui/window/kpi_strip.hpp"
#include "gui/window/log_list.hpp"
#include "gui/window/problem_list.hpp"
#include "gui/window/scenario_panel.hpp"

namespace meshwright::gui {

namespace {

/// A stack whose size does not depend on height-for-width. Otherwise every text change would lay
/// out the texts of all pages, visible or not, to compute their preferred heights.
class Pages : public QStackedWidget {
 public:
  Pages() { connect(this, &QStackedWidget::currentChanged, this, &QWidget::updateGeometry); }
  QSize minimumSizeHint() const override {
    return currentWidget() != nullptr ? currentWidget()->minimumSizeHint() : QSize();
  }
  bool hasHeightForWidth() const override { return false; }
};

}  // namespace

MainWindow::MainWindow(Workbench& workbench) : workbench_(workbench) {
  setWindowTitle("Meshwright");
  setAcceptDrops(true);
  // Before any widget exists that would have to be restyled.
  apply_theme(*qApp, workbench.preferences().values());
  actions_ = new ActionSet(this);
  build_center();
  build_docks();
  build_actions();
  connect_workbench();
  constexpr QSize kUsual(1440, 900);
  resize(kUsual);
  restore_state();
  apply_preferences();
  show_screen(screens_.front()->traits().name);
}

MainWindow::~MainWindow() = default;

// ---- building -----------------------------------------------------------------------------------

void MainWindow::build_center() {
  auto* center = new QWidget;
  auto* column = new QVBoxLayout(center);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  tabs_ = new QTabBar;
  tabs_->setObjectName("screens");
  tabs_->setExpanding(false);
  tabs_->setDrawBase(false);
  tabs_->setAccessibleName(tr("Screens"));
  // Otherwise tabs selected before the window is shown are not tall enough.
  tabs_->ensurePolished();
  // Above the panels, so that tabs stay in place when panels come and go.
  QToolBar* bar = addToolBar(tabs_->accessibleName());
  bar->setObjectName("toolbar.screens");
  bar->setMovable(false);
  bar->toggleViewAction()->setEnabled(false);
  bar->addWidget(tabs_);
  addToolBarBreak();
  kpis_ = new KpiStrip;
  stack_ = new Pages;
  screens_ = make_screens(workbench_, stack_);
  for (Screen* screen : screens_) {
    stack_->addWidget(screen);
    tabs_->addTab(screen->traits().title);
  }
  column->addWidget(kpis_);
  column->addWidget(stack_, 1);
  setCentralWidget(center);
  connect(tabs_, &QTabBar::currentChanged, this, &MainWindow::bring_to_front);
}

QDockWidget* MainWindow::add_dock(const QString& name, const QString& title,
                                  Qt::DockWidgetArea area, QWidget* content) {
  auto* dock = new QDockWidget(title, this);
  dock->setObjectName("dock." + name);
  dock->setWidget(content);
  dock->setFeatures(QDockWidget::DockWidgetClosable | QDockWidget::DockWidgetMovable);
  addDockWidget(area, dock);
  return dock;
}

void MainWindow::build_docks() {
  panel_ = new ScenarioPanel(workbench_);
  inspectors_ = new Pages;
  for (Screen* screen : screens_) {
    QWidget* inspector = screen->inspector();
    inspectors_->addWidget(inspector != nullptr ? inspector : new QWidget);
  }
  inspectors_->setMinimumWidth(240);
  problems_ = new ProblemList;
  log_ = new LogList;
  job_list_ = new JobList(workbench_.jobs());
  setCorner(Qt::BottomLeftCorner, Qt::LeftDockWidgetArea);
  setCorner(Qt::BottomRightCorner, Qt::RightDockWidgetArea);
  scenario_dock_ = add_dock("scenario", tr("Scenario"), Qt::LeftDockWidgetArea, panel_);
  inspector_dock_ = add_dock("inspector", tr("Inspector"), Qt::RightDockWidgetArea, inspectors_);
  problems_dock_ = add_dock("problems", tr("Problems"), Qt::BottomDockWidgetArea, problems_);
  log_dock_ = add_dock("log", tr("Log"), Qt::BottomDockWidgetArea, log_);
  jobs_dock_ = add_dock("jobs", tr("Jobs"), Qt::BottomDockWidgetArea, job_list_);
  tabifyDockWidget(problems_dock_, log_dock_);
  tabifyDockWidget(log_dock_, jobs_dock_);
  for (QDockWidget* dock : {problems_dock_, log_dock_, jobs_dock_}) dock->hide();
  status_ = new QLabel;
  status_->setContentsMargins(8, 2, 8, 2);
  statusBar()->addPermanentWidget(new JobProgress(workbench_.jobs()));
  statusBar()->addPermanentWidget(status_);
  connect(problems_, &ProblemList::chosen, panel_, &ScenarioPanel::go_to_problem);
}

void MainWindow::connect_workbench() {
  connect(&workbench_, &Workbench::simulated, this, &MainWindow::show_simulation);
  connect(&workbench_, &Workbench::snapshot_changed, this, &MainWindow::show_simulation);
  connect(&workbench_, &Workbench::screen_requested, this, &MainWindow::show_screen);
  connect(&workbench_, &Workbench::file_opened, this, &MainWindow::take_file);
  connect(&workbench_, &Workbench::logged, log_, &LogList::add);
  connect(&workbench_, &Workbench::logged, this,
          [this](const QString& line) { statusBar()->showMessage(line, 8000); });
  connect(&workbench_.jobs(), &Jobs::failed, this, &MainWindow::show_failure);
  connect(&workbench_.preferences(), &Preferences::changed, this, &MainWindow::apply_preferences);
}

// ---- showing ------------------------------------------------------------------------------------

Screen* MainWindow::find_screen(const QString& name) const {
  for (Screen* screen : screens_)
    if (screen->traits().name == name) return screen;
  return nullptr;
}

Screen* MainWindow::current_screen() const {
  return screens_[static_cast<std::size_t>(stack_->currentIndex())];
}

void MainWindow::show_screen(const QString& name) {
  for (std::size_t i = 0; i < screens_.size(); ++i)
    if (screens_[i]->traits().name == name) {
      tabs_->setCurrentIndex(static_cast<int>(i));
      bring_to_front(static_cast<int>(i));
    }
}

void MainWindow::bring_to_front(int index) {
  Screen* screen = screens_[static_cast<std::size_t>(index)];
  stack_->setCurrentIndex(index);
  inspectors_->setCurrentIndex(index);
  inspector_dock_->setVisible(screen->inspector() != nullptr);
  scenario_dock_->setVisible(screen->traits().uses_scenario);
  kpis_->setVisible(screen->traits().uses_scenario);
  toolbar_->setVisible(screen->traits().shows_toolbar);
  screen->come_to_front();
  screen->setFocus(Qt::OtherFocusReason);
}

void MainWindow::show_simulation() {
  const auto latest = workbench_.simulation();
  const auto sound = workbench_.sound_simulation();
  const auto snapshot = workbench_.snapshot();
  kpis_->show_simulation(sound.get(), snapshot.get(), latest && latest->is_sound(),
                         workbench_.preferences().values().time_unit);
  if (!latest) return;
  problems_->show_problems(latest->problems);
  problems_dock_->setWindowTitle(
      latest->is_sound() ? tr("Problems") : tr("Problems (%1)").arg(latest->problems.size()));
  status_->setText(latest->is_sound()
                       ? tr("%1 on %2 · %3 tasks")
                             .arg(QString::fromStdString(latest->scenario.model.name),
                                  QString::fromStdString(latest->scenario.cluster.name),
                                  count_text(static_cast<qint64>(latest->step.graph.tasks.size())))
                       : tr("⚠ %n problem(s)", nullptr, static_cast<int>(latest->problems.size())));
}

void MainWindow::take_file(const std::shared_ptr<const OpenedFile>& file) {
  const QString path = QString::fromStdString(file->path);
  add_recent_file(path);
  for (Screen* screen : screens_) {
    if (!screen->take(*file)) continue;
    show_screen(screen->traits().name);
    workbench_.log(tr("Opened %1").arg(path));
    return;
  }
  workbench_.log(tr("No screen can show %1").arg(path));
}

void MainWindow::show_failure(const QString& title, const JobFailure& failure) {
  for (const Diagnostic& diagnostic : failure.diagnostics)
    workbench_.log(QString::fromStdString(format(diagnostic)).trimmed());
  show_dialog(new ErrorDialog(title, failure, this));
}

void MainWindow::apply_preferences() {
  const PreferenceValues& values = workbench_.preferences().values();
  apply_theme(*qApp, values);
  actions_->set_keys(values.keys);
  show_simulation();
}

bool MainWindow::is_settled() {
  return workbench_.jobs().is_idle() && current_screen()->is_settled();
}

// ---- window -------------------------------------------------------------------------------------

void MainWindow::restore_state() {
  const QSettings settings;
  restoreGeometry(settings.value("window/geometry").toByteArray());
  restoreState(settings.value("window/state").toByteArray());
}

void MainWindow::closeEvent(QCloseEvent* event) {
  QSettings settings;
  settings.setValue("window/geometry", saveGeometry());
  settings.setValue("window/state", saveState());
  const Scenario& scenario = workbench_.scenario().scenario();
  if (scenario != default_scenario() && scenario.orders.empty()) keep_scenario(scenario);
  workbench_.jobs().cancel_all();
  event->accept();
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasUrls()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  QStringList paths;
  for (const QUrl& url : event->mimeData()->urls())
    if (url.isLocalFile()) paths.append(url.toLocalFile());
  workbench_.open(paths);
}

}  // namespace meshwright::gui
