#include "gui/run_screen.hpp"

#include <QComboBox>
#include <QFile>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QRegularExpression>
#include <QSpinBox>
#include <QSplitter>
#include <QTemporaryDir>
#include <QVBoxLayout>

#include "core/io_file.hpp"
#include "core/io_pftrace.hpp"
#include "core/timeline_of.hpp"
#include "gui/actions.hpp"
#include "gui/empty_notice.hpp"
#include "gui/loss_chart.hpp"
#include "gui/theme.hpp"
#include "gui/timeline_view.hpp"
#include "gui/trace_files.hpp"
#include "gui/workbench.hpp"

namespace meshwright::gui {
std::optional<RunProgress> run_progress_from_line(const QString& line) {
  static const QRegularExpression kLine(R"(^step\s+(\d+)\s+loss\s+(\S+)\s+([0-9.]+) ms$)");
  const QRegularExpressionMatch match = kLine.match(line.trimmed());
  if (!match.hasMatch()) return std::nullopt;
  return RunProgress{match.captured(1).toInt(), match.captured(2).toDouble(),
                     match.captured(3).toDouble()};
}

RunScreen::RunScreen(Workbench& workbench, QWidget* parent)
    : Screen(workbench, parent),
      clock_(new QComboBox),
      ranks_(new QComboBox),
      steps_(new QSpinBox),
      start_(new QPushButton(tr("&Run"))),
      cancel_(new QPushButton(tr("&Stop"))),
      compare_(new QPushButton(tr("Co&mpare"))),
      verdict_(new QLabel),
      losses_(new LossChart),
      view_(new TimelineView),
      output_(new QPlainTextEdit) {
  auto* column = new QVBoxLayout(this);
  column->addWidget(make_knobs());
  verdict_->setWordWrap(true);
  column->addWidget(verdict_);
  auto* lower = new QSplitter(Qt::Horizontal);
  lower->addWidget(losses_);
  lower->addWidget(output_);
  auto* both = new QSplitter(Qt::Vertical);
  both->addWidget(view_);
  both->addWidget(lower);
  both->setStretchFactor(0, 2);
  both->setStretchFactor(1, 1);
  notice_ = new EmptyNotice(
      {tr("Nothing was measured yet"),
       tr("Carries the scenario out on this machine in real arithmetic and measures its timeline. "
          "For small models: the ranks share this machine's cores."),
       tr("Run")},
      [this] { start(); }, both);
  column->addWidget(notice_, 1);
  column->addWidget(both, 1);
  view_->set_placeholder(tr("Waiting for the first step…"));
  output_->setReadOnly(true);
  output_->setAccessibleName(tr("Output of the run"));
  constexpr int kMostLines = 10'000;
  output_->setMaximumBlockCount(kMostLines);
  const auto apply = [this] {
    apply_preferences(*view_, this->workbench().preferences().values());
  };
  connect(&workbench.preferences(), &Preferences::changed, this, apply);
  apply();
  connect(&program_, &ChildProgram::line_read, this, &RunScreen::take_line);
  connect(&program_, &ChildProgram::ended, this, &RunScreen::end);
}

QWidget* RunScreen::make_knobs() {
  auto* knobs = new QWidget;
  auto* row = new QHBoxLayout(knobs);
  row->setContentsMargins(0, 0, 0, 0);
  clock_->addItems({"virtual", "wall", "replay"});
  clock_->setToolTip(
      tr("virtual: CPU time of kernels, modelled messages · wall: the machine's "
         "clock · replay: sleeps as predicted"));
  ranks_->addItems({"threads", "processes"});
  ranks_->setToolTip(tr("What carries out a rank on this machine"));
  steps_->setToolTip(tr("Training steps that are measured; the median of them is compared"));
  start_->setToolTip(tr("Carries the scenario out on this machine and measures its timeline"));
  cancel_->setToolTip(tr("What was measured until then is kept"));
  compare_->setToolTip(tr("Lays the measured timeline on the predicted one"));
  steps_->setRange(1, 1000);
  steps_->setValue(5);
  const auto add = [&](const QString& text, QWidget* knob) {
    auto* label = new QLabel(text);
    label->setBuddy(knob);
    knob->setAccessibleName(QString(text).remove('&'));
    row->addWidget(label);
    row->addWidget(knob);
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
  return knobs;
}

void RunScreen::add_actions(ActionSet& actions) {
  actions.add({"run.start",
               MenuId::kRun,
               tr("&Run the scenario"),
               tr("Carries it out on this machine and measures its timeline"),
               {QKeySequence("Ctrl+R")}},
              [this] {
                workbench().show_screen(name());
                start();
              });
  actions.add({"run.stop",
               MenuId::kRun,
               tr("&Stop the run"),
               tr("What was measured until then is kept"),
               {QKeySequence("Ctrl+Shift+R")}},
              [this] { cancel(); });
  actions.add({"run.compare",
               MenuId::kRun,
               tr("&Compare with the prediction"),
               tr("Lays the measured timeline on the predicted one"),
               {QKeySequence("Ctrl+Alt+R")}},
              [this] { open_in_compare(); });
}

bool RunScreen::is_settled() { return !cancel_->isEnabled(); }

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
      {tr("Prepare the run"), "run.prepare", false}, this,
      [simulation, folder = folder_](const JobContext&) {
        const auto path = [&](const char* file) { return folder->filePath(file).toStdString(); };
        write_file(path("x.plan.json"), to_json(plan_file_of(*simulation)));
        write_file(path("predicted.pftrace"),
                   to_pftrace(timeline_of(simulation->graph, simulation->times)));
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

/// Nothing runs any more.
void RunScreen::settle(const QString& verdict) {
  verdict_->setText(verdict);
  start_->setEnabled(true);
  cancel_->setEnabled(false);
}

void RunScreen::cancel() {
  if (!is_running()) {
    workbench().jobs().cancel_lane("run.prepare");
    if (cancel_->isEnabled()) settle(tr("Stopped before it began."));
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

/// Latest wins: reading a trace may take longer than a step.
void RunScreen::load_trace() {
  const QString path = folder_->filePath("measured.pftrace");
  if (!QFileInfo::exists(path)) return;
  workbench().jobs().start<std::shared_ptr<const TimelineTracks>>(
      {tr("Read measured lanes"), "run.lanes", false}, this,
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
    settle(tr("Done: %n steps.", nullptr, static_cast<int>(losses_->size())));
  else
    settle(tr("Ended with exit code %1; the reason stands in the output.").arg(end.exit_code));
  if (has_trace) load_trace();
  Q_EMIT ended(end.exit_code);
}

void RunScreen::open_in_compare() {
  if (!compare_->isEnabled()) return;
  workbench().compare(folder_->filePath("predicted.pftrace"),
                      folder_->filePath("measured.pftrace"));
}

}  // namespace meshwright::gui
