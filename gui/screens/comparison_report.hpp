/// The report of a comparison: errors by kind, stage and stream, error attribution, the tasks with
/// the largest errors, and notes from the trace readers.
#pragma once

#include <QTabWidget>
#include <optional>
#include <utility>
#include <vector>

#include "core/timeline/compare.hpp"

class QTableWidget;
class QTextBrowser;

namespace meshwright::gui {

class Waterfall;
struct TimelineTracks;

/// "+4.1 %", "−4.1 %"; a dash for no value.
QString error_text(std::optional<double> error);

class ComparisonReport : public QTabWidget {
  Q_OBJECT
 public:
  explicit ComparisonReport(QWidget* parent = nullptr);
  /// What the readers skipped or repaired, and the provenance of the files.
  void show_notes(const std::vector<std::pair<QString, const TimelineTracks*>>& traces);
  /// Without a report clears everything but the notes.
  void show_report(const std::optional<ValidationReport>& report);

 Q_SIGNALS:
  /// The user chose this task; `name` is its stable name.
  void task_chosen(const QString& name);

 private:
  void add_rows(const QString& group, const std::vector<ComparedTasks>& tasks);
  void add_row(const QStringList& cells, bool is_bad);

  QTableWidget* table_;
  Waterfall* waterfall_;
  QTextBrowser *worst_, *notes_;
};

}  // namespace meshwright::gui
