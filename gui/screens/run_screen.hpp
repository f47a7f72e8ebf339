/// S9: runs the scenario: `meshwright run` as a child process, with its progress, losses and the
/// measured timeline as it grows.
#pragma once

#include <memory>
#include <optional>

#include "gui/screens/screen.hpp"
#include "gui/session/child_program.hpp"
#include "gui/timeline/tracks.hpp"

class QComboBox;
class QLabel;
class QPlainTextEdit;
class QPushButton;
class QSpinBox;
class QTemporaryDir;

namespace meshwright::gui {

class EmptyNotice;
class LossChart;
class TimelineView;

/// A progress line of `meshwright run`: "step   3  loss 4.1253  12.504 ms".
struct RunProgress {
  int step = 0;
  double loss = 0;
  double milliseconds = 0;
  friend bool operator==(const RunProgress&, const RunProgress&) = default;
};
std::optional<RunProgress> run_progress_from_line(const QString& line);

class RunScreen : public Screen {
  Q_OBJECT
 public:
  explicit RunScreen(Workbench& workbench, QWidget* parent = nullptr);
  QString name() const override { return "run"; }
  QString title() const override { return tr("Run"); }
  void add_actions(ActionSet& actions) override;
  bool is_settled() override;
  void start();
  /// Stops the run and keeps the steps measured so far; see ChildProgram::interrupt().
  void cancel();
  bool is_running() const { return program_.is_running(); }

 Q_SIGNALS:
  void ended(int exit_code);

 private:
  QWidget* make_knobs();
  void launch();
  void settle(const QString& verdict);
  void take_line(const QString& line);
  void load_trace();
  void end(const ChildProgramEnd& end);
  void open_in_compare();

  QComboBox *clock_, *ranks_;
  QSpinBox* steps_;
  QPushButton *start_, *cancel_, *compare_;
  QLabel* verdict_;
  EmptyNotice* notice_;
  LossChart* losses_;
  TimelineView* view_;
  QPlainTextEdit* output_;
  /// Plan and traces of the latest run; shared with jobs. Outlives the program that writes to it.
  std::shared_ptr<QTemporaryDir> folder_;
  ChildProgram program_;
};

}  // namespace meshwright::gui
