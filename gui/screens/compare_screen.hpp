/// S3: predicted and measured timelines in paired rows, with the error report below.
#pragma once

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QLabel>
#include <QPushButton>
#include <QSlider>
#include <QTextBrowser>
#include <functional>
#include <memory>
#include "gui/screens/comparison_report.hpp"
#include "gui/timeline_view/timeline_view.hpp"

#include "gui/screens/opened_comparison.hpp"
#include "gui/screens/screen.hpp"

namespace meshwright::gui {

class EmptyNotice;

class CompareScreen : public Screen {
  Q_OBJECT
 public:
  explicit CompareScreen(Workbench& workbench, QWidget* parent = nullptr);
  void add_actions(ActionSet& actions) override;
  QWidget* inspector() override { return inspector_; }
  /// Shows one trace by itself, and compares the two of an OpenedPair.
  bool take(const OpenedFile& file) override;
  /// Compares two trace files.
  void open(const QString& predicted, const QString& measured);
  const OpenedComparison& comparison() const { return shown_; }
  /// At 0 slices are at their predicted positions, at the maximum at their measured ones.
  QSlider& morph_slider() const { return *morph_; }
  /// The measured step that is compared; hidden if there is only one.
  QComboBox& step_box() const { return *step_; }
  TimelineView& view() const { return *view_; }
  /// Step-time error of the previous comparison with the same trace.
  std::optional<double> error_before() const { return error_before_; }

 private:
  QWidget* make_knobs();
  void connect_inspector();
  void find_causes(const std::shared_ptr<const TimelineTracks>& tracks);
  void show_whole(const TimelineTracks& tracks, const TimelineCauses& causes);
  QWidget* make_buttons_of_trace();
  void show_alone(const std::shared_ptr<const TimelineTracks>& tracks, const std::string& path);
  void show_streams(const TimelineTracks& tracks);
  void choose_files();
  void start(const std::function<OpenedComparison()>& open);
  void show_comparison(OpenedComparison comparison);
  void list_steps();
  void pick_step(int step);
  void show_tracks();
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

  QComboBox *step_ = new QComboBox, *alignment_ = new QComboBox;
  QDoubleSpinBox* offset_ = new QDoubleSpinBox;
  QLabel* verdict_ = new QLabel;
  QLabel* residual_ = new QLabel;
  QWidget *knobs_, *beside_;
  QSlider* morph_ = new QSlider(Qt::Horizontal);
  QPushButton* recalibrate_ = new QPushButton(tr("Re&calibrate"));
  TimelineView* view_ = new TimelineView;
  ComparisonReport* report_ = new ComparisonReport;
  QTextBrowser* inspector_ = new QTextBrowser(this);
  EmptyNotice* notice_;
  OpenedComparison shown_;
  std::optional<double> error_before_;
  bool awaits_calibration_ = false, awaits_simulation_ = false;
};

}  // namespace meshwright::gui
