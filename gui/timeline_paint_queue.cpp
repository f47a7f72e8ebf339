#include "gui/timeline_paint_queue.hpp"

#include <QCoreApplication>
#include <QEvent>
#include <utility>

namespace meshwright::gui {

TimelinePaintQueue::TimelinePaintQueue(QObject* parent) : QObject(parent) {
  worker_.setMaxThreadCount(1);
}

TimelinePaintQueue::~TimelinePaintQueue() {
  cancelled_.store(true);
  worker_.waitForDone();
  lanes_.waitForDone();
}

void TimelinePaintQueue::request(const TimelineScene& scene) {
  if (last_ == scene) return;
  last_ = scene;
  next_scene_ = [this, scene]() -> std::function<void()> {
    QImage image = paint_scene(scene, &lanes_, &cancelled_);
    return [this, scene, image = std::move(image)] { Q_EMIT painted(image, scene); };
  };
  start_next();
}

void TimelinePaintQueue::request_overview(std::shared_ptr<const TimelineTracks> tracks,
                                          const TimelineColours& colours, QSize size) {
  next_overview_ = [this, tracks = std::move(tracks), colours, size]() -> std::function<void()> {
    QImage image = paint_overview(*tracks, colours, size.width(), size.height(), &cancelled_);
    return [this, image = std::move(image)] { Q_EMIT overview_painted(image); };
  };
  start_next();
}

void TimelinePaintQueue::start_next() {
  if (running_) return;
  Work& next = next_scene_ ? next_scene_ : next_overview_;
  if (!next) return;
  running_ = true;
  worker_.start([this, work = std::exchange(next, {})] {
    std::function<void()> deliver = work();
    QMetaObject::invokeMethod(
        this,
        [this, deliver = std::move(deliver)] {
          running_ = false;
          start_next();
          deliver();
        },
        Qt::QueuedConnection);
  });
}

void TimelinePaintQueue::wait() {
  while (running_) {
    worker_.waitForDone();
    QCoreApplication::sendPostedEvents(this, QEvent::MetaCall);
  }
}

}  // namespace meshwright::gui
