/// Painting of one lane into pixels, on any thread; see painter.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "gui/timeline/painter.hpp"

namespace meshwright::gui {

/// A lane and where to paint it.
struct LaneCanvas {
  const TimelineScene& scene;
  const Lane& lane;
  PixelRows pixels;   ///< of the whole lane
  TimeWindow window;  ///< in the clock of the lane's tracks, as wide as `pixels`

  const TimelineTracks& tracks() const { return scene.content.tracks_of(lane); }
  std::size_t row() const { return static_cast<std::size_t>(lane.row); }
  const SceneStyle& style() const { return scene.style; }
  const TimelineColors& colors() const { return scene.style.colors; }
  int scaled(double length) const { return static_cast<int>(std::lround(length * style().scale)); }
};

void paint_slice_lane(const LaneCanvas& canvas);
/// Memory, micro-batches in flight, streams or differences.
void paint_counter_lane(const LaneCanvas& canvas);

using PixelLine = std::vector<Argb>;
/// Blends the color of every pixel of a lane from its busy fractions.
void mix_line(const LaneDrawing& drawing, const TimelineColors& colors, Argb idle, PixelLine& line);

inline int first_pixel(float left) { return std::max(0, static_cast<int>(std::lround(left))); }
inline int end_pixel(float right, int width) {
  return std::min(width, static_cast<int>(std::lround(right)));
}

}  // namespace meshwright::gui
