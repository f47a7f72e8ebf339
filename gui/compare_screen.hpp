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
class QPushButton;
class QSlider;

namespace meshwright::gui {

class ComparisonReport;
class EmptyNotice;
class TimelineView;

/// Two timelines side by side, and what came of joining them.
struct OpenedComparison {
  std::shared_ptr<const TimelineTracks> predicted, measured;
  std::shared_ptr<const TimelineComparison> pairs;
  std::optional<ValidationReport> report;
  QString problem;            ///< why there is no report
  std::string measured_path;  ///< to be laid on another prediction; empty: not of a file
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
  /// 0: predicted slices where they were predicted; its maximum: where they were measured.
  QSlider& morph_slider() const { return *morph_; }
  TimelineView& view() const { return *view_; }
  /// Error of the step before the scenario was laid under the same trace again.
  std::optional<double> error_before() const { return error_before_; }

 private:
  QWidget* make_knobs();
  void choose_files();
  void start(const std::function<OpenedComparison()>& open);
  void show_comparison(OpenedComparison comparison);
  void show_residual();
  void show_verdict();
  ComparisonAlignment alignment() const;
  Nanoseconds offset_by_hand() const;
  void align();
  void go_to_task(const QString& name);
  void morph();
  void play_morph();
  void lay_on_scenario();
  void recalibrate();
  void take_calibration(bool is_sound);

  QComboBox* alignment_;
  QDoubleSpinBox* offset_;
  QLabel *verdict_, *residual_;
  QWidget* knobs_;
  QSlider* morph_;
  QPushButton* recalibrate_;
  TimelineView* view_;
  ComparisonReport* report_;
  EmptyNotice* notice_;
  OpenedComparison shown_;
  std::optional<double> error_before_;
  bool awaits_calibration_ = false, awaits_simulation_ = false;
};

}  // namespace meshwright::gui
