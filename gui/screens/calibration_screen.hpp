/// S8: the content of a calibration file: measured points and fitted curves per kernel family and
/// per collective, and their provenance. Also calibrates this machine by running `meshwright
/// calibrate` as a child process.
#pragma once

#include <QCheckBox>
#include <QLabel>
#include <QListWidget>
#include <QProgressBar>
#include <QPushButton>
#include <QTextBrowser>
#include <optional>
#include "gui/widgets/point_chart.hpp"

#include "core/cost/calibration.hpp"
#include "gui/screens/screen.hpp"
#include "gui/session/child_program.hpp"

namespace meshwright::gui {

class EmptyNotice;

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

  QPushButton* measure_ = new QPushButton(tr("Calibrate this &machine"));
  QPushButton* stop_ = new QPushButton(tr("&Stop"));
  QCheckBox* quick_ = new QCheckBox(tr("&Quick"));
  QCheckBox* use_ = new QCheckBox(tr("A&pply to the scenario"));
  QCheckBox* without_outliers_ = new QCheckBox(tr("Hide &outliers"));
  QProgressBar* progress_ = new QProgressBar;
  QLabel* verdict_ = new QLabel;
  ChildProgram program_;
  QString measured_file_, last_line_;
  QListWidget* curves_ = new QListWidget;
  PointChart* chart_ = new PointChart;
  QTextBrowser* provenance_ = new QTextBrowser;
  QLabel* note_ = new QLabel;
  QLabel* residual_ = new QLabel;
  EmptyNotice* notice_;
  std::optional<Calibration> calibration_;
  std::string path_;
};

}  // namespace meshwright::gui
