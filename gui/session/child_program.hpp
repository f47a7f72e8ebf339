/// Runs `meshwright` as a child process, for runs and calibrations that keep cores busy for
/// minutes. The child never outlives this process, however it ends.
#pragma once

#include <QObject>
#include <QProcess>
#include <QStringList>

namespace meshwright::gui {

/// How the child ended. `problem` explains a missing exit code and is empty otherwise.
struct ChildProgramEnd {
  int exit_code = 0;
  QString problem;
};

class ChildProgram : public QObject {
  Q_OBJECT
 public:
  explicit ChildProgram(QObject* parent = nullptr);
  /// Kills a running child and waits for it. Emits no signal.
  ~ChildProgram() override;

  /// The executable next to this program, else in PATH; empty if not found.
  static QString find();
  /// Does nothing while a child is running. Always emits ended(), later.
  void start(const QStringList& arguments);
  /// Sends SIGINT, as Ctrl-C does, so that partial results are kept; kills the child if it is still
  /// running after a few seconds.
  void interrupt();
  bool is_running() const { return process_.state() != QProcess::NotRunning; }

 Q_SIGNALS:
  /// A line of stdout or stderr, without the line end.
  void line_read(const QString& line);
  void ended(const meshwright::gui::ChildProgramEnd& end);

 private:
  void read_lines();
  void take_end(int exit_code, QProcess::ExitStatus status);

  QProcess process_;
  QString rest_;  ///< an incomplete line
};

}  // namespace meshwright::gui
