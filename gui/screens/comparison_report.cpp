#include "gui/screens/comparison_report.hpp"

#include <QTableWidget>
#include <QTextBrowser>
#include <QUrl>
#include <cmath>

#include "gui/text/number_text.hpp"
#include "gui/text/qstring_of.hpp"
#include "gui/timeline/tracks.hpp"
#include "gui/widgets/arrange.hpp"
#include "gui/widgets/waterfall.hpp"

namespace meshwright::gui {
namespace {

/// Rows with a larger error are marked: the program's own accuracy target per kind of task.
constexpr double kNotableError = 0.1;

}  // namespace

QString error_text(std::optional<double> error) {
  if (!error) return "–";
  return (*error >= 0 ? "+" : "−") + percent_text(std::abs(*error));
}

ComparisonReport::ComparisonReport(QWidget* parent)
    : QTabWidget(parent),
      table_(new QTableWidget),
      waterfall_(new Waterfall),
      worst_(new QTextBrowser),
      notes_(new QTextBrowser) {
  addTab(table_, tr("Errors"));
  addTab(waterfall_, tr("Error attribution"));
  addTab(worst_, tr("Largest errors"));
  addTab(notes_, tr("Notes"));
  worst_->setOpenLinks(false);
  connect(worst_, &QTextBrowser::anchorClicked, this,
          [this](const QUrl& name) { Q_EMIT task_chosen(name.toString()); });
  make_row_table(*table_, fontMetrics());
  table_->setAccessibleName(tr("Prediction errors"));
}

/// What the readers skipped or repaired, and the provenance of the files.
void ComparisonReport::show_notes(
    const std::vector<std::pair<QString, const TimelineTracks*>>& traces) {
  QString html;
  for (const auto& [name, tracks] : traces) {
    html += "<h4>" + name.toHtmlEscaped() + "</h4>";
    for (const std::string& note : tracks->notes)
      html += "<p>⚠ " + qstring_of(note).toHtmlEscaped();
    html += "<table cellspacing=6>";
    for (const auto& [key, value] : tracks->provenance)
      html += QString("<tr><td><b>%1</b></td><td>%2</td></tr>")
                  .arg(qstring_of(key).toHtmlEscaped(), qstring_of(value).toHtmlEscaped());
    html += "</table>";
  }
  notes_->setHtml(html);
}

void ComparisonReport::show_report(const std::optional<ValidationReport>& report) {
  table_->clear();
  table_->setRowCount(0);
  const QStringList titles{tr("quantity"), tr("predicted"),           tr("measured"),
                           tr("error"),    tr("mean error per task"), tr("tasks")};
  table_->setColumnCount(static_cast<int>(titles.size()));
  table_->setHorizontalHeaderLabels(titles);
  worst_->clear();
  if (!report) {
    waterfall_->show_parts({}, {}, {});
    return;
  }
  const ValidationReport& r = *report;
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
                          {tr("task durations"), {}, a.compute},
                          {tr("waiting for communication"), {}, a.communication},
                          {tr("other waiting"), {}, a.waiting}});
  QString html = "<table cellspacing=8>";
  for (const ComparedTask& task : r.worst)
    html += QString(
                "<tr><td><a href='%1'>%1</a></td><td align=right>%2</td>"
                "<td align=right>%3</td></tr>")
                .arg(qstring_of(task.name).toHtmlEscaped(), time_text(task.predicted),
                     time_text(task.measured));
  worst_->setHtml(tr("<p>Tasks with the largest differences: predicted, measured</p>") + html +
                  "</table>");
}

void ComparisonReport::add_rows(const QString& group, const std::vector<ComparedTasks>& tasks) {
  for (const ComparedTasks& one : tasks) {
    const auto error = relative_error(one.predicted, one.measured);
    add_row({group.isEmpty() ? qstring_of(one.name) : group + " " + qstring_of(one.name),
             time_text(one.predicted), time_text(one.measured), error_text(error),
             percent_text(one.mean_error), count_text(one.tasks)},
            std::abs(error.value_or(0)) > kNotableError);
  }
}

void ComparisonReport::add_row(const QStringList& cells, bool is_bad) {
  const int row = table_->rowCount();
  table_->insertRow(row);
  for (int column = 0; column < cells.size(); ++column) {
    auto* item = new QTableWidgetItem(is_bad && column == 3 ? "⚠ " + cells[column] : cells[column]);
    if (column > 0) item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
    table_->setItem(row, column, item);
  }
}

}  // namespace meshwright::gui
