#include "gui/screenshot.hpp"

#include <QCoreApplication>
#include <QElapsedTimer>
#include <QEventLoop>
#include <QPixmap>
#include <QThread>

#include "gui/main_window.hpp"

namespace meshwright::gui {

QString save_screenshot(MainWindow& window, const QString& path, int patience_ms) {
  constexpr int kCalmMs = 150;  // layouts settle, results start further jobs
  QElapsedTimer waited, calm;
  waited.start();
  calm.start();
  while (calm.elapsed() < kCalmMs) {
    QCoreApplication::processEvents(QEventLoop::AllEvents, 20);
    if (!window.is_settled()) calm.restart();
    if (waited.elapsed() > patience_ms) return QObject::tr("something is still being worked out");
    QThread::msleep(2);
  }
  return window.grab().save(path, "PNG") ? QString() : QObject::tr("cannot write %1").arg(path);
}

}  // namespace meshwright::gui
