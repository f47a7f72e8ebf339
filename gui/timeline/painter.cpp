#include "gui/timeline/painter.hpp"

#include <QtConcurrent>
#include <algorithm>
#include <cmath>
#include <limits>

#include "gui/timeline/lane_painter.hpp"

namespace meshwright::gui {
namespace {

/// Vertical position of a visible lane in the image, in device pixels.
struct LanePlace {
  const Lane* lane;
  int top, bottom;
};

std::vector<LanePlace> places_of(const TimelineScene& scene, int height) {
  std::vector<LanePlace> places;
  const double scale = scene.style.scale;
  for (const Lane& lane : scene.arrangement->lanes) {
    const int shift = lane.is_pinned ? 0 : scene.scroll;
    const int least = lane.is_pinned ? 0 : scene.arrangement->pinned_height;
    const int top = lane.top - shift;
    if (top + lane.height <= least) continue;
    if (top * scale >= height) {
      if (!lane.is_pinned) break;
      continue;
    }
    places.push_back({&lane, static_cast<int>(std::lround(top * scale)),
                      static_cast<int>(std::lround((top + lane.height) * scale))});
  }
  return places;
}

}  // namespace

TimeWindow TimelineScene::window_of(const Lane& lane, int in_pixels) const {
  const Nanoseconds offset = content.offset_of(lane);
  return {window.from - offset, window.to - offset, in_pixels};
}

QImage paint_scene(const TimelineScene& scene, QThreadPool* pool,
                   const std::atomic<bool>* canceled) {
  const double scale = scene.style.scale;
  const int width = std::max(1, static_cast<int>(std::lround(scene.window.width * scale)));
  const int height = std::max(1, static_cast<int>(std::lround(scene.height * scale)));
  QImage image(width, height, QImage::Format_RGB32);
  image.fill(scene.style.colors.background);
  image.setDevicePixelRatio(scale);
  if (scene.content.tracks == nullptr || scene.arrangement == nullptr) return image;

  auto* const bits = reinterpret_cast<Argb*>(image.bits());  // detached once, before the threads
  const int stride = static_cast<int>(image.bytesPerLine() / 4);
  const int pinned = static_cast<int>(std::lround(scene.arrangement->pinned_height * scale));
  const auto paint_lane = [&](const LanePlace& place) {
    if (canceled != nullptr && canceled->load(std::memory_order_relaxed)) return;
    const int lane_height = place.bottom - place.top;
    const int least = place.lane->is_pinned ? 0 : pinned;
    // A partly visible lane is painted into a separate buffer and copied.
    const bool inside = place.top >= least && place.bottom <= height;
    std::vector<Argb> apart;
    PixelRows pixels{bits + static_cast<std::ptrdiff_t>(place.top) * stride, width, lane_height,
                     stride};
    if (!inside) {
      apart.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(lane_height));
      pixels = {apart.data(), width, lane_height, width};
    }
    const LaneCanvas canvas{scene, *place.lane, pixels, scene.window_of(*place.lane, width)};
    if (place.lane->kind == LaneKind::kSlices)
      paint_slice_lane(canvas);
    else
      paint_counter_lane(canvas);
    if (inside) return;
    for (int y = std::max(least, place.top); y < std::min(height, place.bottom); ++y)
      std::copy_n(pixels.row(y - place.top), width, bits + static_cast<std::ptrdiff_t>(y) * stride);
  };
  std::vector<LanePlace> places = places_of(scene, height);
  if (pool != nullptr)
    QtConcurrent::blockingMap(pool, places, paint_lane);
  else
    for (const LanePlace& place : places) paint_lane(place);
  return image;
}

QImage paint_overview(const TimelineTracks& tracks, const TimelineColors& colors, int width,
                      int height, const std::atomic<bool>* canceled) {
  QImage image(std::max(1, width), std::max(1, height), QImage::Format_RGB32);
  image.fill(colors.background);
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < tracks.rows.size(); ++row)
    if (tracks.rows[row].is_compute && tracks.rows[row].replica == 0) rows.push_back(row);
  if (rows.empty())
    for (std::size_t row = 0; row < tracks.rows.size(); ++row) rows.push_back(row);
  if (rows.empty() || width <= 0) return image;
  const TimeWindow window = whole(tracks.end, width);
  LaneDrawing drawing;
  PixelLine line(static_cast<std::size_t>(width));
  for (int y = 0; y < height; ++y) {
    if (canceled != nullptr && canceled->load(std::memory_order_relaxed)) return image;
    const std::size_t row =
        rows[static_cast<std::size_t>(y) * rows.size() / static_cast<std::size_t>(height)];
    const std::size_t before = y == 0 ? std::numeric_limits<std::size_t>::max()
                                      : rows[static_cast<std::size_t>(y - 1) * rows.size() /
                                             static_cast<std::size_t>(height)];
    if (row != before) {
      draw_lane(tracks, row, window, nullptr, drawing);
      mix_line(drawing, colors, colors.idle, line);
    }
    std::copy(line.begin(), line.end(), reinterpret_cast<Argb*>(image.scanLine(y)));
  }
  return image;
}

}  // namespace meshwright::gui
