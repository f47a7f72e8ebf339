#include "gui/window/screenshot.hpp"

#include <QApplication>
#include <QElapsedTimer>
#include <QEventLoop>
#include <QPixmap>
#include <QThread>

#include "gui/window/main_window.hpp"

namespace meshwright::gui {

bool wait_until_settled(MainWindow& window, int timeout_ms) {
  constexpr int kCalmMs = 150;    // layouts settle, results start further jobs
  constexpr int kCalmTurns = 10;  // on a busy machine the time above may pass without any event
  int turns = 0;
  QElapsedTimer waited, calm;
  waited.start();
  calm.start();
  while (calm.elapsed() < kCalmMs || turns < kCalmTurns) {
    QApplication::processEvents(QEventLoop::AllEvents, 20);
    ++turns;
    if (!window.is_settled()) {
      turns = 0;
      calm.restart();
    }
    if (waited.elapsed() > timeout_ms) return false;
    QThread::msleep(2);
  }
  return true;
}

QString save_screenshot(MainWindow& window, const QString& path, int timeout_ms) {
  if (!wait_until_settled(window, timeout_ms))
    return QObject::tr("timed out waiting for pending work");
  // Capture the modal dialog if there is one.
  QWidget* dialog = QApplication::activeModalWidget();
  QWidget& shown = dialog != nullptr ? *dialog : window;
  return shown.grab().save(path, "PNG") ? QString()
                                        : QObject::tr("cannot write file: %1").arg(path);
}

}  // namespace meshwright::gui
