/// The animation of slices that move to new positions when the schedule changes.
#pragma once

#include <QBasicTimer>
#include <QElapsedTimer>
#include <QObject>
#include <vector>

#include "gui/timeline/colors.hpp"
#include "gui/timeline/glide.hpp"
#include "gui/timeline_view/frame.hpp"

class QPainter;

namespace meshwright::gui {

class TimelineGlide : public QObject {
  Q_OBJECT
 public:
  /// Empty slices stop the animation.
  void start(std::vector<GlidingSlice> slices);
  void stop() { start({}); }
  bool is_running() const { return timer_.isActive(); }
  /// Paints rows without labels and hatching, which are not readable in an animation of 150 ms.
  void paint(QPainter& painter, const TimelineFrame& frame, const TimelineColors& colors) const;

 Q_SIGNALS:
  /// A new frame, or the end.
  void advanced();

 protected:
  void timerEvent(QTimerEvent* event) override;

 private:
  std::vector<GlidingSlice> slices_;
  QBasicTimer timer_;
  QElapsedTimer clock_;
};

}  // namespace meshwright::gui
