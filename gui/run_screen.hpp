/// S9: carries the scenario out for real: `meshwright run` as a child process, its progress, its
/// losses, and its lanes as they come in.
#pragma once

#include <memory>
#include <optional>

#include "gui/child_program.hpp"
#include "gui/screen.hpp"
#include "gui/timeline_tracks.hpp"

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

/// "step   3  loss 4.1253  12.504 ms": what `meshwright run` says after every step.
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
  /// What was measured until then is kept; see ChildProgram::interrupt().
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
  /// Plan and traces of the latest run; jobs hold it too. Outlives the program that writes to it.
  std::shared_ptr<QTemporaryDir> folder_;
  ChildProgram program_;
};

}  // namespace meshwright::gui
