/// S3: predicted over measured, row by row, with the errors beside them.
#pragma once

#include <functional>
#include <memory>

#include "core/compare.hpp"
#include "gui/screen.hpp"
#include "gui/timeline_comparison.hpp"
#include "gui/timeline_tracks.hpp"

class QComboBox;
class QDoubleSpinBox;
class QLabel;
class QTableWidget;
class QTextBrowser;

namespace meshwright::gui {

class EmptyNotice;
class TimelineView;
class Waterfall;

/// Two timelines side by side, and what came of joining them.
struct OpenedComparison {
  std::shared_ptr<const TimelineTracks> predicted, measured;
  std::shared_ptr<const TimelineComparison> pairs;
  std::optional<ValidationReport> report;
  QString problem;  ///< why there is no report
};

class CompareScreen : public Screen {
  Q_OBJECT
 public:
  explicit CompareScreen(Workbench& workbench, QWidget* parent = nullptr);
  QString name() const override { return "compare"; }
  QString title() const override { return tr("Compare"); }
  bool uses_scenario() const override { return false; }
  void add_actions(ActionSet& actions) override;
  /// A measured trace is laid on the scenario; any other is shown alone.
  bool take(const OpenedFile& file) override;
  /// Two trace files.
  void open(const QString& predicted, const QString& measured);
  const OpenedComparison& comparison() const { return shown_; }

 private:
  void choose_files();
  void start(const std::function<OpenedComparison()>& open);
  void show_comparison(OpenedComparison comparison);
  void show_residual();
  void show_notes(const std::vector<std::pair<QString, const TimelineTracks*>>& traces);
  void show_report();
  void add_rows(const QString& group, const std::vector<ComparedTasks>& tasks);
  void add_row(const QStringList& cells, bool is_bad);
  ComparisonAlignment alignment() const;
  Nanoseconds offset_by_hand() const;
  void align();

  QComboBox* alignment_;
  QDoubleSpinBox* offset_;
  QLabel *verdict_, *residual_;
  TimelineView* view_;
  QTableWidget* table_;
  Waterfall* waterfall_;
  QTextBrowser *worst_, *notes_;
  EmptyNotice* notice_;
  OpenedComparison shown_;
};

}  // namespace meshwright::gui
