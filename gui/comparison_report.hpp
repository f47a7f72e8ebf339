/// What a comparison says in words and figures: errors by kind, stage and stream, why the step
/// differs, the worst tasks, and the notes of what was read.
#pragma once

#include <QTabWidget>
#include <optional>
#include <utility>
#include <vector>

#include "core/compare.hpp"

class QTableWidget;
class QTextBrowser;

namespace meshwright::gui {

class Waterfall;
struct TimelineTracks;

/// "+4.1 %", "−4.1 %"; a dash for none.
QString error_text(std::optional<double> error);

class ComparisonReport : public QTabWidget {
  Q_OBJECT
 public:
  explicit ComparisonReport(QWidget* parent = nullptr);
  /// What readers left out or mended, and what the files say of themselves.
  void show_notes(const std::vector<std::pair<QString, const TimelineTracks*>>& traces);
  /// Absent: empties all but the notes.
  void show_report(const std::optional<ValidationReport>& report);

 Q_SIGNALS:
  /// The user wants to see this task, by its stable name.
  void task_chosen(const QString& name);

 private:
  void add_rows(const QString& group, const std::vector<ComparedTasks>& tasks);
  void add_row(const QStringList& cells, bool is_bad);

  QTableWidget* table_;
  Waterfall* waterfall_;
  QTextBrowser *worst_, *notes_;
};

}  // namespace meshwright::gui
