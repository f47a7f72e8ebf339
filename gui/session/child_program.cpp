#include "gui/session/child_program.hpp"

#include <signal.h>
#include <sys/prctl.h>

#include <QCoreApplication>
#include <QFileInfo>
#include <QStandardPaths>
#include <QTimer>

namespace meshwright::gui {
namespace {

constexpr int kKillDelayMs = 5000;  ///< from SIGINT to SIGKILL

}  // namespace

ChildProgram::ChildProgram(QObject* parent) : QObject(parent) {
  process_.setProcessChannelMode(QProcess::MergedChannels);
  // Only async-signal-safe calls are allowed between fork and exec.
  process_.setChildProcessModifier([] { ::prctl(PR_SET_PDEATHSIG, SIGKILL); });
  connect(&process_, &QProcess::readyRead, this, &ChildProgram::read_lines);
  connect(&process_, &QProcess::finished, this, &ChildProgram::take_end);
  connect(&process_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
    if (error == QProcess::FailedToStart)  // finished() is not emitted then
      Q_EMIT ended({-1, tr("Cannot start meshwright: %1").arg(process_.errorString())});
  });
}

ChildProgram::~ChildProgram() {
  process_.disconnect(this);
  if (!is_running()) return;
  process_.kill();  // its own children die with it
  process_.waitForFinished(kKillDelayMs);
}

QString ChildProgram::find() {
  QString beside = QCoreApplication::applicationDirPath() + "/meshwright";
  if (QFileInfo(beside).isExecutable()) return beside;
  return QStandardPaths::findExecutable("meshwright");
}

void ChildProgram::start(const QStringList& arguments) {
  if (is_running()) return;
  const QString program = find();
  if (program.isEmpty()) {
    const QString problem =
        tr("Cannot find the program meshwright next to meshwright-gui or in PATH. Build or install "
           "it first.");
    QTimer::singleShot(0, this, [this, problem] { Q_EMIT ended({-1, problem}); });
    return;
  }
  rest_.clear();
  process_.start(program, arguments);
}

void ChildProgram::interrupt() {
  if (!is_running()) return;
  ::kill(static_cast<pid_t>(process_.processId()), SIGINT);
  QTimer::singleShot(kKillDelayMs, &process_, [this, asked = process_.processId()] {
    if (is_running() && process_.processId() == asked) process_.kill();
  });
}

void ChildProgram::read_lines() {
  rest_ += QString::fromUtf8(process_.readAll());
  for (qsizetype end = rest_.indexOf('\n'); end >= 0; end = rest_.indexOf('\n')) {
    const QString line = rest_.left(end);
    rest_.remove(0, end + 1);
    Q_EMIT line_read(line);
  }
}

void ChildProgram::take_end(int exit_code, QProcess::ExitStatus status) {
  read_lines();
  if (!rest_.isEmpty()) Q_EMIT line_read(std::exchange(rest_, {}));
  if (status == QProcess::CrashExit)
    Q_EMIT ended({-1, tr("The process crashed or was killed.")});
  else
    Q_EMIT ended({exit_code, {}});
}

}  // namespace meshwright::gui
