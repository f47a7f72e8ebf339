/// S9: carries the scenario out for real: `meshwright run` as a child process, its progress, its
/// losses, and its lanes as they come in.
#pragma once

#include <QProcess>
#include <memory>
#include <optional>

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
  ~RunScreen() override;
  QString name() const override { return "run"; }
  QString title() const override { return tr("Run"); }
  void add_actions(ActionSet& actions) override;
  bool is_settled() override;
  void start();
  /// Asks the program to end as Ctrl-C would, so that what was measured is kept; kills it when it
  /// does not within a few seconds.
  void cancel();
  bool is_running() const { return process_.state() != QProcess::NotRunning; }

 Q_SIGNALS:
  void ended(int exit_code);

 private:
  QWidget* make_knobs();
  void launch(const QString& program);
  void settle(const QString& verdict);
  void read_lines();
  void take_line(const QString& line);
  void load_trace();
  void end(int exit_code, QProcess::ExitStatus status);
  void open_in_compare();

  QComboBox *clock_, *ranks_;
  QSpinBox* steps_;
  QPushButton *start_, *cancel_, *compare_;
  QLabel* verdict_;
  EmptyNotice* notice_;
  LossChart* losses_;
  TimelineView* view_;
  QPlainTextEdit* output_;
  QProcess process_;
  std::shared_ptr<QTemporaryDir> folder_;  ///< plan and traces of the latest run; jobs hold it too
  QString rest_;                           ///< of a line that is not complete
};

}  // namespace meshwright::gui
