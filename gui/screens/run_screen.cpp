#include "gui/screens/run_screen.hpp"

#include <QFile>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QRegularExpression>
#include <QTemporaryDir>
#include <QVBoxLayout>

#include "core/formats/file.hpp"
#include "core/formats/pftrace.hpp"
#include "core/timeline/timeline_of.hpp"
#include "gui/session/workbench.hpp"
#include "gui/timeline/trace_files.hpp"
#include "gui/widgets/actions.hpp"
#include "gui/widgets/arrange.hpp"
#include "gui/widgets/empty_notice.hpp"
#include "gui/widgets/theme.hpp"

namespace meshwright::gui {
std::optional<RunProgress> run_progress_from_line(const QString& line) {
  static const QRegularExpression kLine(R"(^step\s+(\d+)\s+loss\s+(\S+)\s+([0-9.]+) ms$)");
  const QRegularExpressionMatch match = kLine.match(line.trimmed());
  if (!match.hasMatch()) return std::nullopt;
  return RunProgress{match.captured(1).toInt(), match.captured(2).toDouble(),
                     match.captured(3).toDouble()};
}

RunScreen::RunScreen(Workbench& workbench, QWidget* parent)
    : Screen(workbench, {.name = "run", .title = tr("Run")}, parent) {
  auto* column = new QVBoxLayout(this);
  column->addWidget(make_knobs());
  verdict_->setWordWrap(true);
  column->addWidget(verdict_);
  QSplitter* lower = make_splitter(Qt::Horizontal, {{losses_}, {output_}});
  QSplitter* both = make_splitter(Qt::Vertical, {{view_, 2}, {lower, 1}});
  notice_ = new EmptyNotice(
      {tr("No run yet"),
       tr("Trains the model on this machine and measures the timeline. For small models only: all "
          "ranks share the cores of this machine."),
       tr("Run")},
      [this] { start(); }, both, *column);
  view_->set_placeholder(tr("Waiting for the first step…"));
  output_->setReadOnly(true);
  output_->setAccessibleName(tr("Run output"));
  constexpr int kMostLines = 10'000;
  output_->setMaximumBlockCount(kMostLines);
  follow_preferences(*view_, workbench.preferences());
  connect(&program_, &ChildProgram::line_read, this, &RunScreen::take_line);
  connect(&program_, &ChildProgram::ended, this, &RunScreen::end);
}

QWidget* RunScreen::make_knobs() {
  QHBoxLayout* row = make_row();
  clock_->addItems({"virtual", "wall", "replay"});
  clock_->setToolTip(
      tr("virtual: CPU time of kernels, modeled message times · wall: wall-clock time · replay: "
         "sleeps for the predicted times"));
  ranks_->addItems({"threads", "processes"});
  ranks_->setToolTip(tr("Runs each rank as a thread or as a process"));
  steps_->setToolTip(tr("Number of measured training steps; their median is compared"));
  start_->setToolTip(tr("Runs the scenario on this machine and measures its timeline"));
  cancel_->setToolTip(tr("Stops the run and keeps the steps measured so far"));
  compare_->setToolTip(tr("Compares the measured timeline with the prediction"));
  steps_->setRange(1, 1000);
  steps_->setValue(5);
  const auto add = [&](const QString& text, QWidget* knob) {
    add_labeled(*row, text, knob);
    row->addSpacing(10);
  };
  row->addWidget(start_);
  row->addWidget(cancel_);
  row->addWidget(compare_);
  row->addSpacing(16);
  add(tr("C&lock"), clock_);
  add(tr("R&anks"), ranks_);
  add(tr("S&teps"), steps_);
  row->addStretch(1);
  cancel_->setEnabled(false);
  compare_->setEnabled(false);
  connect(start_, &QPushButton::clicked, this, &RunScreen::start);
  connect(cancel_, &QPushButton::clicked, this, &RunScreen::cancel);
  connect(compare_, &QPushButton::clicked, this, &RunScreen::open_in_compare);
  return row->parentWidget();
}

void RunScreen::add_actions(ActionSet& actions) {
  actions.add(
      {"run.start", MenuId::kRun, tr("&Run scenario"),
       tr("Runs the scenario on this machine and measures its timeline"), shortcuts("Ctrl+R")},
      [this] {
        workbench().show_screen(traits().name);
        start();
      });
  actions.add({"run.stop", MenuId::kRun, tr("&Stop run"),
               tr("Stops the run and keeps the steps measured so far"), shortcuts("Ctrl+Shift+R")},
              [this] { cancel(); });
  actions.add({"run.compare", MenuId::kRun, tr("&Compare with prediction"),
               tr("Compares the measured timeline with the prediction"), shortcuts("Ctrl+Alt+R")},
              [this] { open_in_compare(); });
}

void RunScreen::start() {
  const auto simulation = workbench().sound_simulation();
  if (cancel_->isEnabled() || !simulation) return;
  notice_->give_way();
  folder_ = std::make_shared<QTemporaryDir>();
  losses_->clear();
  output_->clear();
  compare_->setEnabled(false);
  start_->setEnabled(false);
  cancel_->setEnabled(true);
  verdict_->setText(tr("Running…"));
  workbench().jobs().start<bool>(
      {tr("Prepare run"), "run.prepare", false}, this,
      [simulation, folder = folder_](const JobContext&) {
        const auto path = [&](const char* file) { return folder->filePath(file).toStdString(); };
        write_file(path("x.plan.json"), to_json(plan_file_of(*simulation)));
        write_file(path("predicted.pftrace"),
                   to_pftrace(timeline_of(simulation->step.graph, simulation->step.times)));
        return true;
      },
      [this](bool) { launch(); },
      [this](const JobFailure& failure) {
        settle(QString::fromStdString(failure.diagnostics.front().what));
      });
}

void RunScreen::launch() {
  program_.start({"run", folder_->filePath("x.plan.json"), "--clock", clock_->currentText(),
                  "--ranks", ranks_->currentText(), "--steps", QString::number(steps_->value()),
                  "--live", "-o", folder_->filePath("measured.pftrace")});
}

/// Updates the controls after the run has ended.
void RunScreen::settle(const QString& verdict) {
  verdict_->setText(verdict);
  start_->setEnabled(true);
  cancel_->setEnabled(false);
}

void RunScreen::cancel() {
  if (!is_running()) {
    workbench().jobs().cancel_lane("run.prepare");
    if (cancel_->isEnabled()) settle(tr("Canceled before the run started."));
    return;
  }
  verdict_->setText(tr("Stopping…"));
  program_.interrupt();
}

void RunScreen::take_line(const QString& line) {
  output_->appendPlainText(line);
  const std::optional<RunProgress> progress = run_progress_from_line(line);
  if (!progress) return;
  losses_->add(progress->step, progress->loss);
  load_trace();
}

/// Only the latest request counts: reading a trace may take longer than a step.
void RunScreen::load_trace() {
  const QString path = folder_->filePath("measured.pftrace");
  if (!QFileInfo::exists(path)) return;
  workbench().jobs().start<std::shared_ptr<const TimelineTracks>>(
      {tr("Read measured timeline"), "run.lanes", false}, this,
      [file = path.toStdString(), folder = folder_](const JobContext&) {
        return std::make_shared<const TimelineTracks>(read_trace_files({file}));
      },
      [this](const std::shared_ptr<const TimelineTracks>& tracks) { view_->set_tracks(tracks); },
      [this](const JobFailure& failure) {
        workbench().log(QString::fromStdString(failure.diagnostics.front().what));
      });
}

void RunScreen::end(const ChildProgramEnd& end) {
  const bool has_trace = QFileInfo::exists(folder_->filePath("measured.pftrace"));
  compare_->setEnabled(has_trace);
  if (!end.problem.isEmpty())
    settle(end.problem);
  else if (end.exit_code == 0)
    settle(tr("Finished %n step(s).", nullptr, static_cast<int>(losses_->size())));
  else
    settle(tr("Failed with exit code %1; see the output below.").arg(end.exit_code));
  if (has_trace) load_trace();
  Q_EMIT ended(end.exit_code);
}

void RunScreen::open_in_compare() {
  if (!compare_->isEnabled()) return;
  workbench().compare(folder_->filePath("predicted.pftrace"),
                      folder_->filePath("measured.pftrace"));
}

}  // namespace meshwright::gui
