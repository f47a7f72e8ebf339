/// The program `meshwright` as a child: runs and calibrations keep cores busy for minutes and are
/// its work. It lives no longer than this program, however this one ends.
#pragma once

#include <QObject>
#include <QProcess>
#include <QStringList>

namespace meshwright::gui {

/// How it ended. `problem` says in words why there is no exit code, else it is empty.
struct ChildProgramEnd {
  int exit_code = 0;
  QString problem;
};

class ChildProgram : public QObject {
  Q_OBJECT
 public:
  explicit ChildProgram(QObject* parent = nullptr);
  /// Kills what still runs and waits until it is gone. No signal is emitted then.
  ~ChildProgram() override;

  /// Beside this program, else on the path; empty: nowhere.
  static QString find();
  /// One at a time: does nothing while one runs. Emits ended() in any case, later.
  void start(const QStringList& arguments);
  /// Asks it to end, as Ctrl-C does, so that it keeps what it has; kills it when it does not within
  /// a few seconds.
  void interrupt();
  bool is_running() const { return process_.state() != QProcess::NotRunning; }

 Q_SIGNALS:
  /// Of its output and its errors, without the end of the line.
  void line_read(const QString& line);
  void ended(const meshwright::gui::ChildProgramEnd& end);

 private:
  void read_lines();
  void take_end(int exit_code, QProcess::ExitStatus status);

  QProcess process_;
  QString rest_;  ///< of a line that is not complete
};

}  // namespace meshwright::gui
