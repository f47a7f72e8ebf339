#include "gui/compare_screen.hpp"

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QSplitter>
#include <QTabWidget>
#include <QTableWidget>
#include <QTextBrowser>
#include <QVBoxLayout>

#include "core/io_file.hpp"
#include "core/io_pftrace.hpp"
#include "core/timeline_of.hpp"
#include "gui/actions.hpp"
#include "gui/empty_notice.hpp"
#include "gui/number_text.hpp"
#include "gui/theme.hpp"
#include "gui/timeline_view.hpp"
#include "gui/trace_files.hpp"
#include "gui/waterfall.hpp"
#include "gui/workbench.hpp"

namespace meshwright::gui {
namespace {

/// Beyond it a row is marked: what the program holds itself to for single kinds of task.
constexpr double kNotableError = 0.1;

QString from(const std::string& text) { return QString::fromStdString(text); }

QString error_text(std::optional<double> error) {
  if (!error) return "–";
  return (*error >= 0 ? "+" : "−") + percent_text(std::abs(*error));
}

/// Joined by the names of tasks; traces of other programs have none that a plan knows.
void join(OpenedComparison& opened, const CompareInput& predicted, const CompareInput& measured) {
  try {
    opened.report = compare(predicted, measured);
  } catch (const InputError& error) {
    opened.problem = from(error.diagnostics().front().what);
  }
}

OpenedComparison compare_files(const std::string& predicted, const std::string& measured) {
  OpenedComparison opened;
  const std::string bytes_p = read_file(predicted), bytes_m = read_file(measured);
  opened.predicted = std::make_shared<const TimelineTracks>(tracks_of_trace(bytes_p, predicted));
  opened.measured = std::make_shared<const TimelineTracks>(tracks_of_trace(bytes_m, measured));
  try {
    const Timeline p = timeline_from_pftrace(bytes_p, predicted);
    const Timeline m = timeline_from_pftrace(bytes_m, measured);
    join(opened, {p, predicted}, {m, measured});
  } catch (const InputError& error) {
    opened.problem = from(error.diagnostics().front().what);
  }
  return opened;
}

OpenedComparison compare_with(const Simulation& simulation,
                              const std::shared_ptr<const TimelineTracks>& measured,
                              const std::string& path) {
  OpenedComparison opened{simulation.tracks, measured, nullptr, std::nullopt, {}};
  try {
    const Timeline p = timeline_of(simulation.graph, simulation.times);
    const Timeline m = timeline_from_pftrace(read_file(path), path);
    join(opened, {p, "the scenario"}, {m, path});
  } catch (const InputError& error) {
    opened.problem = from(error.diagnostics().front().what);
  }
  return opened;
}

}  // namespace

CompareScreen::CompareScreen(Workbench& workbench, QWidget* parent)
    : Screen(workbench, parent),
      alignment_(new QComboBox),
      offset_(new QDoubleSpinBox),
      verdict_(new QLabel),
      residual_(new QLabel),
      view_(new TimelineView),
      table_(new QTableWidget),
      waterfall_(new Waterfall),
      worst_(new QTextBrowser),
      notes_(new QTextBrowser) {
  auto* column = new QVBoxLayout(this);
  auto* head = new QHBoxLayout;
  column->addLayout(head);
  head->addWidget(verdict_, 1);
  head->addWidget(residual_);
  auto* label = new QLabel(tr("&Align by"));
  label->setBuddy(alignment_);
  alignment_->setAccessibleName(tr("Align by"));
  alignment_->addItems({tr("start of the step"), tr("first forward pass"), tr("hand")});
  head->addWidget(label);
  head->addWidget(alignment_);
  constexpr double kMostOffset = 1e6;
  offset_->setRange(-kMostOffset, kMostOffset);
  offset_->setDecimals(3);
  offset_->setSuffix(" ms");
  offset_->setAccessibleName(tr("What is added to the measured times"));
  offset_->setToolTip(offset_->accessibleName());
  offset_->hide();
  head->addWidget(offset_);
  auto* pages = new QTabWidget;
  pages->addTab(table_, tr("Errors"));
  pages->addTab(waterfall_, tr("Why the step differs"));
  pages->addTab(worst_, tr("Worst tasks"));
  pages->addTab(notes_, tr("Notes"));
  auto* both = new QSplitter(Qt::Vertical);
  both->addWidget(view_);
  both->addWidget(pages);
  both->setStretchFactor(0, 3);
  both->setStretchFactor(1, 2);
  notice_ = new EmptyNotice(
      {tr("No comparison yet"),
       tr("Open a measured trace: it is laid on the scenario. Or choose two files with Compare in "
          "the menu Run, or carry a scenario out on the screen Run."),
       tr("Choose two traces…")},
      [this] { choose_files(); }, both);
  column->addWidget(notice_, 1);
  column->addWidget(both, 1);
  verdict_->setWordWrap(true);
  table_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->verticalHeader()->hide();
  table_->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 8);
  table_->setAccessibleName(tr("Errors of the prediction"));
  const auto apply_theme = [this] {
    view_->set_theme(timeline_colours_of(this->workbench().preferences().values()));
  };
  connect(&workbench.preferences(), &Preferences::changed, this, apply_theme);
  apply_theme();
  connect(alignment_, &QComboBox::currentIndexChanged, this, &CompareScreen::align);
  connect(offset_, &QDoubleSpinBox::valueChanged, this, &CompareScreen::align);
  connect(&workbench, &Workbench::comparison_requested, this, &CompareScreen::open);
}

void CompareScreen::add_actions(ActionSet& actions) {
  actions.add({"compare.open",
               MenuId::kRun,
               tr("Compare &two traces…"),
               tr("The predicted one, then the measured one"),
               {QKeySequence("Ctrl+Shift+O")}},
              [this] { choose_files(); });
}

void CompareScreen::choose_files() {
  auto* dialog = new QFileDialog(this, tr("Predicted and measured trace"), {},
                                 tr("Traces (*.pftrace *.json *.json.gz);;All files (*)"));
  dialog->setFileMode(QFileDialog::ExistingFiles);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  connect(dialog, &QFileDialog::filesSelected, this, [this](const QStringList& files) {
    if (files.size() == 2)
      open(files[0], files[1]);
    else
      verdict_->setText(tr("Choose two files: the predicted and the measured trace."));
  });
  dialog->open();
}

/// Opens and joins beside the GUI thread, then shows.
void CompareScreen::start(const std::function<OpenedComparison()>& open) {
  workbench().jobs().start<std::shared_ptr<OpenedComparison>>(
      {tr("Compare"), "compare", true}, this,
      [open, alignment = alignment(), offset = offset_by_hand()](const JobContext&) {
        auto opened = std::make_shared<OpenedComparison>(open());
        opened->pairs = std::make_shared<const TimelineComparison>(
            compare_tracks(*opened->predicted, *opened->measured, alignment, offset));
        return opened;
      },
      [this](const std::shared_ptr<OpenedComparison>& opened) {
        show_comparison(std::move(*opened));
      });
}

void CompareScreen::open(const QString& predicted, const QString& measured) {
  workbench().show_screen(name());
  start([p = predicted.toStdString(), m = measured.toStdString()] {
    OpenedComparison opened = compare_files(p, m);
    // Files in either order: one says that it is measured.
    if (opened.predicted->origin == TimelineOrigin::kMeasured &&
        opened.measured->origin == TimelineOrigin::kPredicted)
      opened = compare_files(m, p);
    return opened;
  });
}

bool CompareScreen::take(const OpenedFile& file) {
  const auto* tracks = std::get_if<std::shared_ptr<const TimelineTracks>>(&file.content);
  if (tracks == nullptr) return false;
  const auto simulation = workbench().sound_simulation();
  if ((*tracks)->origin != TimelineOrigin::kMeasured || !simulation) {
    shown_ = {};
    view_->set_tracks(*tracks);
    verdict_->setText(tr("%1, alone. A measured trace that is opened is laid on the scenario.")
                          .arg(from(file.path)));
    residual_->clear();
    notice_->give_way();
    show_notes({{from(file.path), tracks->get()}});
    return true;
  }
  start([simulation, measured = *tracks, path = file.path] {
    return compare_with(*simulation, measured, path);
  });
  return true;
}

void CompareScreen::show_comparison(OpenedComparison comparison) {
  shown_ = std::move(comparison);
  notice_->give_way();
  show_notes({{tr("predicted"), shown_.predicted.get()}, {tr("measured"), shown_.measured.get()}});
  view_->set_comparison(shown_.predicted, shown_.measured, shown_.pairs);
  show_residual();
  show_report();
}

ComparisonAlignment CompareScreen::alignment() const {
  switch (alignment_->currentIndex()) {
    case 0:
      return ComparisonAlignment::kIterationStart;
    case 1:
      return ComparisonAlignment::kFirstForward;
    default:
      return ComparisonAlignment::kFreeOffset;
  }
}

Nanoseconds CompareScreen::offset_by_hand() const {
  constexpr double kNanosecondsPerMillisecond = 1e6;
  return Nanoseconds(std::llround(offset_->value() * kNanosecondsPerMillisecond));
}

void CompareScreen::align() {
  offset_->setVisible(alignment() == ComparisonAlignment::kFreeOffset);
  if (!shown_.predicted) return;
  using Pairs = std::shared_ptr<const TimelineComparison>;
  workbench().jobs().start<Pairs>(
      {tr("Align"), "compare.align", false}, this,
      [predicted = shown_.predicted, measured = shown_.measured, alignment = alignment(),
       offset = offset_by_hand()](const JobContext&) {
        return std::make_shared<const TimelineComparison>(
            compare_tracks(*predicted, *measured, alignment, offset));
      },
      [this, measured = shown_.measured](const Pairs& pairs) {
        if (shown_.measured != measured) return;  // another comparison by now
        shown_.pairs = pairs;
        view_->set_pairs(pairs);
        show_residual();
      });
}

void CompareScreen::show_residual() {
  residual_->setText(
      tr("mean shift of starts %1")
          .arg(time_text(Ticks(shown_.pairs->residual.value * kTicksPerNanosecond))));
}

/// What readers left out or mended, and what the files say of themselves.
void CompareScreen::show_notes(
    const std::vector<std::pair<QString, const TimelineTracks*>>& traces) {
  QString html;
  for (const auto& [name, tracks] : traces) {
    html += "<h4>" + name.toHtmlEscaped() + "</h4>";
    for (const std::string& note : tracks->notes) html += "<p>⚠ " + from(note).toHtmlEscaped();
    html += "<table cellspacing=6>";
    for (const auto& [key, value] : tracks->provenance)
      html += QString("<tr><td><b>%1</b></td><td>%2</td></tr>")
                  .arg(from(key).toHtmlEscaped(), from(value).toHtmlEscaped());
    html += "</table>";
  }
  notes_->setHtml(html);
}

// ---- report -------------------------------------------------------------------------------------

void CompareScreen::show_report() {
  table_->clear();
  table_->setRowCount(0);
  const QStringList titles{
      tr("what"), tr("predicted"), tr("measured"), tr("error"), tr("mean error of a task"),
      tr("tasks")};
  table_->setColumnCount(static_cast<int>(titles.size()));
  table_->setHorizontalHeaderLabels(titles);
  worst_->clear();
  if (!shown_.report) {
    verdict_->setText(tr("The lanes stand side by side, but the tasks could not be joined: %1")
                          .arg(shown_.problem));
    waterfall_->show_parts({}, {}, {});
    return;
  }
  const ValidationReport& r = *shown_.report;
  verdict_->setText(
      tr("Step: predicted <b>%1</b>, measured <b>%2</b> (median of %3, spread %4): "
         "<b>%5</b> · %6 tasks joined")
          .arg(time_text(r.predicted_step), time_text(r.measured_step))
          .arg(r.counted_steps)
          .arg(time_text(r.measured_spread), error_text(step_error(r)), count_text(r.matched)));
  add_row({tr("step"), time_text(r.predicted_step), time_text(r.measured_step),
           error_text(step_error(r)), "", ""},
          std::abs(step_error(r).value_or(0)) > kNotableError);
  add_rows(tr("kind"), r.by_kind);
  add_rows({}, r.by_stage);  // "stage 0"
  add_rows(tr("stream"), r.by_stream);
  for (const ComparedMemory& m : r.memory) {
    const auto error = relative_error(m.predicted, m.measured);
    add_row({tr("peak memory, rank %1").arg(m.rank.value), bytes_text(m.predicted),
             bytes_text(m.measured), error_text(error), "", ""},
            std::abs(error.value_or(0)) > kNotableError);
  }
  table_->resizeColumnsToContents();

  const StepAttribution& a = r.attribution;
  waterfall_->show_parts(tr("predicted"), tr("measured"),
                         {{tr("step"), r.predicted_step, r.predicted_step},
                          {tr("tasks took longer"), {}, a.compute},
                          {tr("waited for messages"), {}, a.communication},
                          {tr("waited otherwise"), {}, a.waiting}});
  QString html = "<table cellspacing=8>";
  for (const ComparedTask& task : r.worst)
    html += QString("<tr><td>%1</td><td align=right>%2</td><td align=right>%3</td></tr>")
                .arg(from(task.name).toHtmlEscaped(), time_text(task.predicted),
                     time_text(task.measured));
  worst_->setHtml(tr("<p>Largest differences: predicted, measured</p>") + html + "</table>");
}

void CompareScreen::add_rows(const QString& group, const std::vector<ComparedTasks>& tasks) {
  for (const ComparedTasks& one : tasks) {
    const auto error = relative_error(one.predicted, one.measured);
    add_row({group.isEmpty() ? from(one.name) : group + " " + from(one.name),
             time_text(one.predicted), time_text(one.measured), error_text(error),
             percent_text(one.mean_error), count_text(one.tasks)},
            std::abs(error.value_or(0)) > kNotableError);
  }
}

void CompareScreen::add_row(const QStringList& cells, bool is_bad) {
  const int row = table_->rowCount();
  table_->insertRow(row);
  for (int column = 0; column < cells.size(); ++column) {
    auto* item = new QTableWidgetItem(is_bad && column == 3 ? "⚠ " + cells[column] : cells[column]);
    if (column > 0) item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
    table_->setItem(row, column, item);
  }
}

}  // namespace meshwright::gui
