/// The latest images of rows and overview that worker threads have painted.
#pragma once

#include <QImage>
#include <QObject>
#include <memory>
#include <optional>

#include "gui/timeline_view/frame.hpp"
#include "gui/timeline_view/paint_queue.hpp"

class QPainter;

namespace meshwright::gui {

class TimelineImages : public QObject {
  Q_OBJECT
 public:
  TimelineImages();

  void request(const TimelineScene& scene) { queue_.request(scene); }
  void request_overview(std::shared_ptr<const TimelineTracks> tracks, const TimelineColors& colors,
                        QSize size) {
    queue_.request_overview(std::move(tracks), colors, size);
  }
  void clear();
  /// Blocks until all requested images are there.
  void wait() { queue_.wait(); }

  const QImage& overview() const { return overview_; }
  /// True if the image of the rows covers the whole body as it is to be shown.
  bool is_current(const TimelineFrame& frame) const;
  /// Paints the rows, scaled to the current window until a new image is ready.
  void paint_body(QPainter& painter, const TimelineFrame& frame) const;

 Q_SIGNALS:
  void body_painted();
  void overview_painted();

 private:
  bool has_same_place(const TimelineFrame& frame) const;

  QImage body_, overview_;
  std::optional<TimelineScene> body_scene_;
  TimelinePaintQueue queue_;  ///< last: its painters must not outlive the images
};

}  // namespace meshwright::gui
