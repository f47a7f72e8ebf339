/// The visible time range of a timeline: zooming and panning.
#pragma once

#include <QObject>

#include "gui/timeline/content.hpp"
#include "gui/timeline/layout.hpp"

namespace meshwright::gui {

class TimelineViewport : public QObject {
  Q_OBJECT
 public:
  explicit TimelineViewport(const TimelineContent& content) : content_(content) {}

  const TimeWindow& window() const { return window_; }
  Nanoseconds visible_from() const { return window_.from; }
  Nanoseconds visible_to() const { return window_.to; }
  bool shows_all() const;

  /// Pixels of the visible range; the range stays.
  void set_width(int pixels) { window_.width = pixels; }
  void show_all();
  void show_end();
  /// At least kShortestWindow, around the same middle.
  void show_range(Nanoseconds from, Nanoseconds to);
  void center_on(Nanoseconds time);
  /// `pixel` keeps its time.
  void zoom_by(double factor, double pixel);
  void zoom_in();
  void zoom_out();
  void pan_by(double pixels);
  /// Pans `from` by a time; used while dragging.
  void pan_from(const TimeWindow& from, Nanoseconds by);

 Q_SIGNALS:
  void visible_range_changed(qint64 from_ns, qint64 to_ns);

 private:
  void set_window(const TimeWindow& window);

  const TimelineContent& content_;
  TimeWindow window_{Nanoseconds(0), Nanoseconds(1'000), 1};
};

}  // namespace meshwright::gui
