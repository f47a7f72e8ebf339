#include "gui/timeline_view/viewport.hpp"

#include <algorithm>
#include <cmath>

namespace meshwright::gui {
namespace {

constexpr double kZoomStep = 0.7;

}  // namespace

void TimelineViewport::set_window(const TimeWindow& window) {
  if (window_ == window) return;
  const int width = window_.width;
  window_ = window;
  window_.width = width;
  Q_EMIT visible_range_changed(window.from.value, window.to.value);
}

bool TimelineViewport::shows_all() const {
  return content_.tracks != nullptr && window_.from <= Nanoseconds(0) &&
         window_.to >= content_.tracks->end;
}

void TimelineViewport::show_all() {
  if (content_.tracks != nullptr) set_window(whole(content_.end(), window_.width));
}

void TimelineViewport::show_end() {
  if (content_.tracks == nullptr) return;
  pan_from(window_, content_.tracks->end - window_.to + window_.span() / 50);
}

void TimelineViewport::show_range(Nanoseconds from, Nanoseconds to) {
  if (to - from < kShortestWindow) {
    const Nanoseconds middle = from + (to - from) / 2;
    from = middle - kShortestWindow / 2;
    to = from + kShortestWindow;
  }
  set_window({from, to, window_.width});
}

void TimelineViewport::center_on(Nanoseconds time) {
  const Nanoseconds half = window_.span() / 2;
  show_range(time - half, time + half);
}

void TimelineViewport::zoom_by(double factor, double pixel) {
  if (content_.tracks == nullptr) return;
  const double x = std::clamp(pixel, 0.0, static_cast<double>(window_.width));
  set_window(zoomed(window_, window_.time_at(x), factor, content_.tracks->end));
}

void TimelineViewport::zoom_in() { zoom_by(kZoomStep, window_.width / 2.0); }
void TimelineViewport::zoom_out() { zoom_by(1 / kZoomStep, window_.width / 2.0); }

void TimelineViewport::pan_by(double pixels) {
  if (content_.tracks == nullptr) return;
  pan_from(window_, Nanoseconds(static_cast<std::int64_t>(
                        std::llround(pixels * window_.nanoseconds_per_pixel()))));
}

void TimelineViewport::pan_from(const TimeWindow& from, Nanoseconds by) {
  set_window(panned(from, by, content_.tracks->end));
}

}  // namespace meshwright::gui
