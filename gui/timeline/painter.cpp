/// Paints lanes into pixels. All parts share the scene and its colors, so they are in one file; the
/// vector version is in timeline_painter_vectors.cpp.
#include "gui/timeline/painter.hpp"

#include <QtConcurrent>
#include <algorithm>
#include <cmath>
#include <limits>

namespace meshwright::gui {
namespace {

using Line = std::vector<Argb>;

/// Blends the color of every pixel of a lane from its busy fractions.
void mix_line(const LaneDrawing& drawing, const TimelineColours& colours, Argb idle, Line& line) {
  const std::size_t channels = drawing.channels.size();
  std::array<Argb, kSliceKindCount> colour{};
  for (std::size_t c = 0; c < channels; ++c)
    colour[c] = colours.slice[static_cast<std::size_t>(drawing.channels[c])];
  for (std::size_t x = 0; x < line.size(); ++x) {
    const std::uint16_t* shares = channels == 0 ? nullptr : &drawing.shares[x * channels];
    std::uint32_t red = 0, green = 0, blue = 0, rest = kFullShare;
    for (std::size_t c = 0; c < channels; ++c) {
      const std::uint32_t share = std::min<std::uint32_t>(shares[c], rest);
      if (share == 0) continue;
      red += (colour[c] >> 16 & 255) * share;
      green += (colour[c] >> 8 & 255) * share;
      blue += (colour[c] & 255) * share;
      rest -= share;
    }
    red += (idle >> 16 & 255) * rest;
    green += (idle >> 8 & 255) * rest;
    blue += (idle & 255) * rest;
    constexpr std::uint32_t kHalf = kFullShare / 2;
    line[x] = 0xff000000U | (red + kHalf) / kFullShare << 16 | (green + kHalf) / kFullShare << 8 |
              (blue + kHalf) / kFullShare;
  }
}

/// True if the hatch pattern of a cause covers the pixel: causes differ in pattern, not in color.
bool is_hatched(IdleCause cause, int x, int y, int step) {
  const auto on = [&](int value) { return ((value % step) + step) % step < std::max(1, step / 7); };
  switch (cause) {
    case IdleCause::kWarmUp:
      return on(x - y);
    case IdleCause::kDrain:
      return on(x + y);
    case IdleCause::kDependency:
      return on(y);
    case IdleCause::kCommunication:
      return on(x - y) || on(x + y);
    case IdleCause::kUnknown:
      return on(x) && on(y);
  }
  return false;
}

int first_pixel(float left) { return std::max(0, static_cast<int>(std::lround(left))); }
int end_pixel(float right, int width) {
  return std::min(width, static_cast<int>(std::lround(right)));
}

class LanePainter {
 public:
  LanePainter(const TimelineScene& scene, const Lane& lane, const PixelRows& pixels)
      : scene_(scene),
        lane_(lane),
        style_(scene.style),
        colours_(scene.style.colours),
        pixels_(pixels),
        window_(scene.window_of(lane, pixels.width)) {}

  void paint() {
    switch (lane_.kind) {
      case LaneKind::kSlices:
        paint_slices();
        break;
      case LaneKind::kMemory:
        paint_memory();
        break;
      case LaneKind::kInFlight:
        paint_in_flight();
        break;
      case LaneKind::kLinks:
        paint_links();
        break;
      case LaneKind::kDifference:
        paint_difference();
        break;
    }
  }

 private:
  const TimelineTracks& tracks() const { return scene_.tracks_of(lane_); }
  std::size_t row() const { return static_cast<std::size_t>(lane_.row); }
  const TimelineCauses* causes() const { return lane_.is_measured ? nullptr : scene_.causes.get(); }
  int scaled(double pixels) const { return static_cast<int>(std::lround(pixels * style_.scale)); }

  // ---- slices -----------------------------------------------------------------------------------
  void paint_slices() {
    const bool is_compute = tracks().rows[row()].is_compute;
    draw_lane(tracks(), row(), window_, style_.bubble_causes ? causes() : nullptr, drawing_);
    Line line(static_cast<std::size_t>(pixels_.width));
    mix_line(drawing_, colours_, is_compute ? colours_.idle : colours_.row_stripe, line);
    paint_outside(line);
    for (int y = 0; y < pixels_.height; ++y) std::copy(line.begin(), line.end(), pixels_.row(y));
    for (const IdleBox& idle : drawing_.idle) hatch(idle);
    for (const SliceBox& box : drawing_.boxes) paint_box(box);
    if (style_.critical_path && causes() != nullptr) paint_critical();
    if (scene_.ghost != nullptr && !lane_.is_measured) paint_ghost();
  }

  /// Time outside the timeline is not idle time.
  void paint_outside(Line& line) const {
    const double begin = window_.pixel_of(Nanoseconds(0)), end = window_.pixel_of(tracks().end);
    const auto width = static_cast<double>(line.size());
    const auto left = static_cast<std::ptrdiff_t>(std::clamp(std::floor(begin), 0.0, width));
    const auto right = static_cast<std::ptrdiff_t>(std::clamp(std::ceil(end), 0.0, width));
    std::fill(line.begin(), line.begin() + left, colours_.background);
    std::fill(line.begin() + std::max(left, right), line.end(), colours_.background);
  }

  void hatch(const IdleBox& idle) const {
    const int step = std::max(4, scaled(7));
    const int left = first_pixel(idle.left), right = end_pixel(idle.right, pixels_.width);
    // Anchor the pattern to time, so that it moves with the content.
    const auto shift = static_cast<int>(
        std::lround(std::fmod(window_.pixel_of(Nanoseconds(0)), static_cast<double>(step))));
    for (int y = 0; y < pixels_.height; ++y)
      for (int x = left; x < right; ++x)
        if (is_hatched(idle.cause, x - shift, y, step))
          pixels_.row(y)[x] = blended(pixels_.row(y)[x], colours_.hatch);
  }

  /// Other model chunks of a device are drawn lighter.
  bool is_other_chunk(std::size_t slice) const {
    const std::int32_t stage = tracks().label_of(slice).stage, own = tracks().rows[row()].stage;
    return stage >= 0 && own >= 0 && stage != own;
  }

  Argb colour_of(std::size_t slice) const {
    const Argb kind = colours_.slice[static_cast<std::size_t>(tracks().kind[slice])];
    Argb colour = kind;
    if (style_.microbatch_colours && tracks().microbatch[slice] != kNoMicrobatch)
      colour = microbatch_colour(tracks().microbatch[slice]);
    constexpr Argb kLighter = 0x50ffffffU;
    return is_other_chunk(slice) ? blended(colour, kLighter) : colour;
  }

  void paint_box(const SliceBox& box) const {
    const Argb colour = colour_of(box.slice);
    const int left = first_pixel(box.left), right = end_pixel(box.right, pixels_.width);
    if (left >= right) return;
    if (style_.microbatch_colours || is_other_chunk(box.slice)) {
      // Partially covered edge pixels keep their blended color.
      const int from = std::max(0, static_cast<int>(std::ceil(box.left)));
      const int to = std::min(pixels_.width, static_cast<int>(std::floor(box.right)));
      for (int y = 0; y < pixels_.height; ++y)
        if (from < to) std::fill(pixels_.row(y) + from, pixels_.row(y) + to, colour);
    }
    constexpr Argb kEdge = 0x48000000U;
    if (box.right - box.left >= 4 * style_.scale && box.left >= 0)
      for (int y = 0; y < pixels_.height; ++y)
        pixels_.row(y)[left] = blended(pixels_.row(y)[left], kEdge);
    label(box, colour);
  }

  void label(const SliceBox& box, Argb colour) const {
    if (scene_.font == nullptr || box.right - box.left < kLabelWidth * style_.scale ||
        pixels_.height < scene_.font->height() - 2)
      return;
    const double left = std::max(0.0F, box.left);
    const double right = std::min(static_cast<float>(pixels_.width), box.right);
    std::string text = short_name(tracks(), box.slice);
    int width = scene_.font->width_of(text);
    const int room = static_cast<int>(right - left) - scaled(2);
    while (width > room && text.size() > 1) {
      text.pop_back();
      width = scene_.font->width_of(text);
      // Never show part of a number.
      if (!text.empty() && std::isdigit(static_cast<unsigned char>(text.back())) != 0) {
        while (!text.empty() && std::isdigit(static_cast<unsigned char>(text.back())) != 0)
          text.pop_back();
        width = scene_.font->width_of(text);
      }
    }
    if (text.empty() || width > room) return;
    const int x = static_cast<int>((left + right - width) / 2);
    const int y = (pixels_.height - scene_.font->height()) / 2;
    scene_.font->draw(pixels_, x, y, text, text_on(colour));
  }

  /// Outlines the critical path and dims everything else.
  void paint_critical() {
    std::vector<bool> bright(static_cast<std::size_t>(pixels_.width));
    const std::vector<std::uint32_t>& path = causes()->critical_of_row[row()];
    std::vector<std::pair<int, int>> outlines;
    auto at = std::partition_point(path.begin(), path.end(), [&](std::uint32_t s) {
      return tracks().end_of(s) <= window_.from;
    });
    for (; at != path.end() && tracks().start_of(*at) < window_.to; ++at) {
      const int left = std::max(0, static_cast<int>(window_.pixel_of(tracks().start_of(*at))));
      const int right = std::min(
          pixels_.width,
          std::max(left + 1, static_cast<int>(std::ceil(window_.pixel_of(tracks().end_of(*at))))));
      if (left >= right) continue;
      std::fill(bright.begin() + left, bright.begin() + right, true);
      if (!outlines.empty() && left <= outlines.back().second)
        outlines.back().second = std::max(outlines.back().second, right);
      else
        outlines.emplace_back(left, right);
    }
    for (int y = 0; y < pixels_.height; ++y)
      for (int x = 0; x < pixels_.width; ++x)
        if (!bright[static_cast<std::size_t>(x)])
          pixels_.row(y)[x] = blended(pixels_.row(y)[x], colours_.dim);
    for (const auto& [left, right] : outlines) outline(left, right, colours_.critical, scaled(2));
  }

  void outline(int left, int right, Argb colour, int thickness) const {
    const int bottom = pixels_.height;
    for (int y = 0; y < bottom; ++y) {
      const bool edge = y < thickness || y >= bottom - thickness;
      for (int x = left; x < right; ++x)
        if (edge || x < left + thickness || x >= right - thickness)
          pixels_.row(y)[x] = blended(pixels_.row(y)[x], colour);
    }
  }

  void paint_ghost() {
    const TimelineTracks& ghost = *scene_.ghost;
    const TimelineRow& own = tracks().rows[row()];
    for (std::size_t other = 0; other < ghost.rows.size(); ++other) {
      if (ghost.rows[other].rank != own.rank || ghost.rows[other].stream != own.stream) continue;
      draw_lane(ghost, other, window_, nullptr, drawing_);
      for (const SliceBox& box : drawing_.boxes)
        outline(first_pixel(box.left), end_pixel(box.right, pixels_.width), colours_.ghost,
                std::max(1, scaled(1)));
      return;
    }
  }

  // ---- counters ---------------------------------------------------------------------------------
  void fill_background() const {
    for (int y = 0; y < pixels_.height; ++y)
      std::fill(pixels_.row(y), pixels_.row(y) + pixels_.width, colours_.row_stripe);
  }
  void fill_column(int x, double from, double to, Argb colour) const {
    const int top =
        std::clamp(static_cast<int>(std::lround(pixels_.height * (1 - to))), 0, pixels_.height);
    const int bottom =
        std::clamp(static_cast<int>(std::lround(pixels_.height * (1 - from))), 0, pixels_.height);
    for (int y = top; y < bottom; ++y) pixels_.row(y)[x] = colour;
  }

  /// Memory that is constant over the step is paler than memory that varies.
  std::array<Argb, kMemoryClassCount> memory_colours() const {
    std::array<Argb, kMemoryClassCount> colour = colours_.memory;
    constexpr Argb kVeil = 0xa0000000U;
    for (const MemoryClass steady : {MemoryClass::kWeights, MemoryClass::kGradients,
                                     MemoryClass::kOptimizer, MemoryClass::kReserved}) {
      Argb& pale = colour[static_cast<std::size_t>(steady)];
      pale = blended(pale, (colours_.row_stripe & 0xffffffU) | kVeil);
    }
    return colour;
  }

  void paint_memory() const {
    fill_background();
    const auto& curves = tracks().memory;
    const auto curve = std::find_if(curves.begin(), curves.end(),
                                    [&](const auto& c) { return c.rank == lane_.rank; });
    if (curve == curves.end()) return;
    constexpr double kHeadroom = 1.08;
    const auto top = kHeadroom * static_cast<double>(
                                     std::max({peak_of(*curve), curve->capacity, Bytes(1)}).value);
    const std::vector<const MemoryPoint*> points = memory_of_pixels(*curve, window_);
    const std::array<Argb, kMemoryClassCount> colour = memory_colours();
    const int end = end_pixel(static_cast<float>(window_.pixel_of(tracks().end)), pixels_.width);
    for (int x = 0; x < end; ++x) {
      const MemoryPoint* point = points[static_cast<std::size_t>(x)];
      if (point == nullptr) continue;
      double below = 0;
      for (std::size_t c = 0; c < kMemoryClassCount; ++c) {
        const double above = below + static_cast<double>(point->amounts.by_class[c].value) / top;
        fill_column(x, below, above, colour[c]);
        below = above;
      }
    }
    if (curve->capacity <= Bytes(0)) return;
    const int y = static_cast<int>(
        std::lround(pixels_.height * (1 - static_cast<double>(curve->capacity.value) / top)));
    if (y < 0 || y >= pixels_.height) return;
    for (int x = 0; x < pixels_.width; ++x)
      if (x / scaled(4) % 2 == 0) pixels_.row(y)[x] = colours_.slower;
  }

  void paint_in_flight() const {
    fill_background();
    if (scene_.in_flight == nullptr) return;
    const InFlightCurve& curve = scene_.in_flight->of_row(row());
    if (curve.peak == 0) return;
    const std::vector<std::int32_t> peaks = peaks_of_pixels(curve, window_);
    const Argb colour = colours_.slice[static_cast<std::size_t>(SliceKind::kBackwardInput)];
    for (int x = 0; x < pixels_.width; ++x)
      fill_column(x, 0, 0.92 * peaks[static_cast<std::size_t>(x)] / curve.peak, colour);
  }

  /// Mean busy fraction of the rank's streams, stacked by kind.
  void paint_links() {
    fill_background();
    std::vector<double> below(static_cast<std::size_t>(pixels_.width));
    double streams = 0;
    for (const TimelineRow& other : tracks().rows)
      streams += other.rank == lane_.rank && !other.is_compute;
    for (std::size_t other = 0; other < tracks().rows.size(); ++other) {
      const TimelineRow& r = tracks().rows[other];
      if (r.rank != lane_.rank || r.is_compute) continue;
      draw_lane(tracks(), other, window_, nullptr, drawing_);
      const std::size_t channels = drawing_.channels.size();
      for (int x = 0; x < pixels_.width; ++x)
        for (std::size_t c = 0; c < channels; ++c) {
          double& from = below[static_cast<std::size_t>(x)];
          const double share =
              drawing_.shares[static_cast<std::size_t>(x) * channels + c] / 65535.0 / streams;
          fill_column(x, from, from + share,
                      colours_.slice[static_cast<std::size_t>(drawing_.channels[c])]);
          from += share;
        }
    }
  }

  /// Every measured slice at its position: up (red) is longer than predicted, down (green) shorter.
  void paint_difference() {
    fill_background();
    const int middle = pixels_.height / 2;
    std::fill(pixels_.row(middle), pixels_.row(middle) + pixels_.width, colours_.grid);
    if (scene_.comparison == nullptr) return;
    const TimelineTracks& measured = *scene_.measured;
    const auto other = static_cast<std::size_t>(lane_.other);
    const std::vector<SlicePair>& pairs = scene_.comparison->slices;
    const Nanoseconds offset = scene_.comparison->offset;
    const auto first =
        static_cast<std::uint32_t>(measured.first_ending_after(other, window_.from - offset));
    auto pair = std::partition_point(pairs.begin(), pairs.end(),
                                     [&](const SlicePair& p) { return p.measured < first; });
    for (; pair != pairs.end() && pair->measured < measured.row_begin[other + 1]; ++pair) {
      const Nanoseconds start = measured.start_of(pair->measured) + offset;
      if (start >= window_.to) break;
      const Nanoseconds wanted = tracks().duration_of(pair->predicted);
      const Nanoseconds taken = measured.duration_of(pair->measured);
      const double change = ratio(taken - wanted, std::max(wanted, Nanoseconds(1)));
      const int left = std::max(0, static_cast<int>(window_.pixel_of(start)));
      const int right = std::min(
          pixels_.width,
          std::max(left + 1, static_cast<int>(std::ceil(window_.pixel_of(start + taken)))));
      // Full deflection, half the lane height, is a difference of 50 %.
      const double part = std::clamp(change / 0.5, -1.0, 1.0);
      const int reach = static_cast<int>(std::lround(std::abs(part) * (middle - 1)));
      for (int step = 1; step <= reach; ++step) {
        const int y = part > 0 ? middle - step : middle + step;
        if (y < 0 || y >= pixels_.height) continue;
        const Argb colour = part > 0 ? colours_.slower : colours_.faster;
        std::fill(pixels_.row(y) + left, pixels_.row(y) + std::max(left, right), colour);
      }
    }
  }

  const TimelineScene& scene_;
  const Lane& lane_;
  const SceneStyle& style_;
  const TimelineColours& colours_;
  PixelRows pixels_;
  TimeWindow window_;
  LaneDrawing drawing_;
};

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
  const Nanoseconds offset =
      lane.is_measured && comparison != nullptr ? comparison->offset : Nanoseconds(0);
  return {window.from - offset, window.to - offset, in_pixels};
}

QImage paint_scene(const TimelineScene& scene, QThreadPool* pool,
                   const std::atomic<bool>* cancelled) {
  const double scale = scene.style.scale;
  const int width = std::max(1, static_cast<int>(std::lround(scene.window.width * scale)));
  const int height = std::max(1, static_cast<int>(std::lround(scene.height * scale)));
  QImage image(width, height, QImage::Format_RGB32);
  image.fill(scene.style.colours.background);
  image.setDevicePixelRatio(scale);
  if (scene.tracks == nullptr || scene.arrangement == nullptr) return image;

  auto* const bits = reinterpret_cast<Argb*>(image.bits());  // detached once, before the threads
  const int stride = static_cast<int>(image.bytesPerLine() / 4);
  const int pinned = static_cast<int>(std::lround(scene.arrangement->pinned_height * scale));
  const auto paint_lane = [&](const LanePlace& place) {
    if (cancelled != nullptr && cancelled->load(std::memory_order_relaxed)) return;
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
    LanePainter(scene, *place.lane, pixels).paint();
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

QImage paint_overview(const TimelineTracks& tracks, const TimelineColours& colours, int width,
                      int height, const std::atomic<bool>* cancelled) {
  QImage image(std::max(1, width), std::max(1, height), QImage::Format_RGB32);
  image.fill(colours.background);
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < tracks.rows.size(); ++row)
    if (tracks.rows[row].is_compute && tracks.rows[row].replica == 0) rows.push_back(row);
  if (rows.empty())
    for (std::size_t row = 0; row < tracks.rows.size(); ++row) rows.push_back(row);
  if (rows.empty() || width <= 0) return image;
  const TimeWindow window = whole(tracks.end, width);
  LaneDrawing drawing;
  Line line(static_cast<std::size_t>(width));
  for (int y = 0; y < height; ++y) {
    if (cancelled != nullptr && cancelled->load(std::memory_order_relaxed)) return image;
    const std::size_t row =
        rows[static_cast<std::size_t>(y) * rows.size() / static_cast<std::size_t>(height)];
    const std::size_t before = y == 0 ? std::numeric_limits<std::size_t>::max()
                                      : rows[static_cast<std::size_t>(y - 1) * rows.size() /
                                             static_cast<std::size_t>(height)];
    if (row != before) {
      draw_lane(tracks, row, window, nullptr, drawing);
      mix_line(drawing, colours, colours.idle, line);
    }
    std::copy(line.begin(), line.end(), reinterpret_cast<Argb*>(image.scanLine(y)));
  }
  return image;
}

}  // namespace meshwright::gui
