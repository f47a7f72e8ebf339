#include "gui/timeline_view/images.hpp"

#include <QPainter>

namespace meshwright::gui {

TimelineImages::TimelineImages() {
  connect(&queue_, &TimelinePaintQueue::painted, this,
          [this](const QImage& image, const TimelineScene& scene) {
            body_ = image;
            body_scene_ = scene;
            Q_EMIT body_painted();
          });
  connect(&queue_, &TimelinePaintQueue::overview_painted, this, [this](const QImage& image) {
    overview_ = image;
    Q_EMIT overview_painted();
  });
}

void TimelineImages::clear() {
  body_ = overview_ = QImage();
  body_scene_.reset();
}

bool TimelineImages::has_same_place(const TimelineFrame& frame) const {
  return frame.arrangement != nullptr && !body_.isNull() && body_scene_ &&
         body_scene_->window == frame.window && body_scene_->scroll == frame.scroll;
}

bool TimelineImages::is_current(const TimelineFrame& frame) const {
  return has_same_place(frame) &&
         QSize(body_scene_->window.width, body_scene_->height) == frame.geometry.body.size();
}

void TimelineImages::paint_body(QPainter& painter, const TimelineFrame& frame) const {
  if (body_.isNull() || !body_scene_) return;
  const QRect& body = frame.geometry.body;
  const TimelineScene& had = *body_scene_;
  painter.save();
  painter.setClipRect(body, Qt::IntersectClip);
  if (has_same_place(frame)) {
    painter.drawImage(body.topLeft(), body_);
  } else {
    const double left = frame.window.pixel_of(had.window.from),
                 right = frame.window.pixel_of(had.window.to);
    const QRectF place(body.left() + left, body.top() + had.scroll - frame.scroll, right - left,
                       had.height);
    painter.drawImage(place, body_, QRectF(body_.rect()));
  }
  painter.restore();
}

}  // namespace meshwright::gui
