/// S9: runs the scenario: `meshwright run` as a child process, with its progress, losses and the
/// measured timeline as it grows.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSpinBox>
#include <memory>
#include <optional>
#include "gui/timeline_view/timeline_view.hpp"
#include "gui/widgets/loss_chart.hpp"

#include "gui/screens/screen.hpp"
#include "gui/session/child_program.hpp"
#include "gui/timeline/tracks.hpp"

class QTemporaryDir;

namespace meshwright::gui {

class EmptyNotice;

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
  void add_actions(ActionSet& actions) override;
  bool is_settled() override { return !cancel_->isEnabled(); }
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

  QComboBox* clock_ = new QComboBox;
  QComboBox* ranks_ = new QComboBox;
  QSpinBox* steps_ = new QSpinBox;
  QPushButton* start_ = new QPushButton(tr("&Run"));
  QPushButton* cancel_ = new QPushButton(tr("&Stop"));
  QPushButton* compare_ = new QPushButton(tr("Co&mpare"));
  QLabel* verdict_ = new QLabel;
  EmptyNotice* notice_;
  LossChart* losses_ = new LossChart;
  TimelineView* view_ = new TimelineView;
  QPlainTextEdit* output_ = new QPlainTextEdit;
  /// Plan and traces of the latest run; shared with jobs. Outlives the program that writes to it.
  std::shared_ptr<QTemporaryDir> folder_;
  ChildProgram program_;
};

}  // namespace meshwright::gui
