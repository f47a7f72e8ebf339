/// S8: what a calibration holds: measured points and the curve through them, by kernel family and
/// by collective, and where it all is from. Measures this machine: `meshwright calibrate` as a
/// child process.
#pragma once

#include <optional>

#include "core/calibration.hpp"
#include "gui/child_program.hpp"
#include "gui/screen.hpp"

class QCheckBox;
class QLabel;
class QListWidget;
class QProgressBar;
class QPushButton;
class QTextBrowser;

namespace meshwright::gui {

class EmptyNotice;
class PointChart;

/// " 40 %  gpt2, 64 tokens": what `meshwright calibrate` says between its probes.
struct CalibrationProgress {
  int percent = 0;
  QString what;
  friend bool operator==(const CalibrationProgress&, const CalibrationProgress&) = default;
};
std::optional<CalibrationProgress> calibration_progress_from_line(const QString& line);

class CalibrationScreen : public Screen {
  Q_OBJECT
 public:
  explicit CalibrationScreen(Workbench& workbench, QWidget* parent = nullptr);
  QString name() const override { return "calibration"; }
  QString title() const override { return tr("Calibration"); }
  bool uses_scenario() const override { return false; }
  void add_actions(ActionSet& actions) override;
  bool take(const OpenedFile& file) override;
  bool is_settled() override { return !program_.is_running(); }
  /// Measures this machine into a file of its own; opens it, and prices the scenario by it if the
  /// box says so.
  void measure();
  /// Nothing of it is kept.
  void stop();
  /// 20 seconds in place of two minutes, fewer shapes.
  void set_quick(bool quick);
  bool is_measuring() const { return program_.is_running(); }
  const std::optional<Calibration>& calibration() const { return calibration_; }
  PointChart& chart() const { return *chart_; }
  QListWidget& curves() const { return *curves_; }
  QCheckBox& outlier_box() const { return *without_outliers_; }

 private:
  QWidget* make_knobs();
  void take_line(const QString& line);
  void end(const ChildProgramEnd& end);
  void settle(const QString& verdict);
  void choose_file();
  void show_calibration();
  void show_curve();
  void use_in_scenario();
  void price_scenario_by(const std::string& file);

  QPushButton *measure_, *stop_;
  QCheckBox *quick_, *use_, *without_outliers_;
  QProgressBar* progress_;
  QLabel* verdict_;
  ChildProgram program_;
  QString measured_file_, last_line_;
  QListWidget* curves_;
  PointChart* chart_;
  QTextBrowser* provenance_;
  QLabel *note_, *residual_;
  EmptyNotice* notice_;
  std::optional<Calibration> calibration_;
  std::string path_;
};

}  // namespace meshwright::gui
