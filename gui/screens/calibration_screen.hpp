/// S8: the content of a calibration file: measured points and fitted curves per kernel family and
/// per collective, and their provenance. Also calibrates this machine by running `meshwright
/// calibrate` as a child process.
#pragma once

#include <optional>

#include "core/cost/calibration.hpp"
#include "gui/screens/screen.hpp"
#include "gui/session/child_program.hpp"

class QCheckBox;
class QLabel;
class QListWidget;
class QProgressBar;
class QPushButton;
class QTextBrowser;

namespace meshwright::gui {

class EmptyNotice;
class PointChart;

/// A progress line of `meshwright calibrate`: " 40 %  gpt2, 64 tokens".
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
  /// Calibrates this machine into a new file and opens it;
  /// applies it to the scenario if the check box is set.
  void measure();
  /// Stops the calibration and discards its results.
  void stop();
  /// Fewer shapes: about 20 seconds instead of two minutes.
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
