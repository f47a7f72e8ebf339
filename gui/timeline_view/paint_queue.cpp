#include "gui/timeline_view/paint_queue.hpp"

#include <QCoreApplication>
#include <QEvent>
#include <utility>

namespace meshwright::gui {

TimelinePaintQueue::TimelinePaintQueue(QObject* parent) : QObject(parent) {
  for (Line* line : {&scenes_, &overviews_}) line->worker.setMaxThreadCount(1);
}

TimelinePaintQueue::~TimelinePaintQueue() {
  canceled_.store(true);
  for (Line* line : {&scenes_, &overviews_}) line->worker.waitForDone();
  lanes_.waitForDone();
}

void TimelinePaintQueue::request(const TimelineScene& scene) {
  if (last_ == scene) return;
  last_ = scene;
  start(scenes_, [this, scene]() -> std::function<void()> {
    QImage image = paint_scene(scene, &lanes_, &canceled_);
    return [this, scene, image = std::move(image)] { Q_EMIT painted(image, scene); };
  });
}

void TimelinePaintQueue::request_overview(std::shared_ptr<const TimelineTracks> tracks,
                                          const TimelineColors& colors, QSize size) {
  start(overviews_, [this, tracks = std::move(tracks), colors, size]() -> std::function<void()> {
    QImage image = paint_overview(*tracks, colors, size.width(), size.height(), &canceled_);
    return [this, image = std::move(image)] { Q_EMIT overview_painted(image); };
  });
}

void TimelinePaintQueue::start(Line& line, Work work) {
  line.next = std::move(work);
  start_next(line);
}

void TimelinePaintQueue::start_next(Line& line) {
  if (line.running || !line.next) return;
  line.running = true;
  line.worker.start([this, &line, work = std::exchange(line.next, {})] {
    std::function<void()> deliver = work();
    QMetaObject::invokeMethod(
        this,
        [this, &line, deliver = std::move(deliver)] {
          line.running = false;
          start_next(line);
          deliver();
        },
        Qt::QueuedConnection);
  });
}

void TimelinePaintQueue::wait() {
  while (!is_idle()) {
    scenes_.worker.waitForDone();
    overviews_.worker.waitForDone();
    QCoreApplication::sendPostedEvents(this, QEvent::MetaCall);
  }
}

}  // namespace meshwright::gui
