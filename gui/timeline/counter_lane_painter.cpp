#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "gui/timeline/lane_painter.hpp"

namespace meshwright::gui {
namespace {

class CounterLanePainter : private LaneCanvas {
 public:
  explicit CounterLanePainter(const LaneCanvas& canvas) : LaneCanvas(canvas) {}

  void paint() {
    fill_background();
    switch (lane.kind) {
      case LaneKind::kMemory:
        return paint_memory();
      case LaneKind::kInFlight:
        return paint_in_flight();
      case LaneKind::kLinks:
        return paint_links();
      case LaneKind::kDifference:
        return paint_difference();
      case LaneKind::kSlices:
        break;
    }
  }

 private:
  void fill_background() const {
    for (int y = 0; y < pixels.height; ++y)
      std::fill(pixels.row(y), pixels.row(y) + pixels.width, colors().row_stripe);
  }
  void fill_column(int x, double from, double to, Argb color) const {
    const int top =
        std::clamp(static_cast<int>(std::lround(pixels.height * (1 - to))), 0, pixels.height);
    const int bottom =
        std::clamp(static_cast<int>(std::lround(pixels.height * (1 - from))), 0, pixels.height);
    for (int y = top; y < bottom; ++y) pixels.row(y)[x] = color;
  }

  void paint_memory() const {
    const auto& curves = tracks().memory;
    const auto curve = std::find_if(curves.begin(), curves.end(),
                                    [&](const auto& c) { return c.rank == lane.rank; });
    if (curve == curves.end()) return;
    constexpr double kHeadroom = 1.08;
    const auto top = kHeadroom * static_cast<double>(
                                     std::max({peak_of(*curve), curve->capacity, Bytes(1)}).value);
    const std::vector<const MemoryPoint*> points = memory_of_pixels(*curve, window);
    std::array<Argb, kMemoryClassCount> color{};
    for (std::size_t c = 0; c < kMemoryClassCount; ++c)
      color[c] = lane_color(colors(), static_cast<MemoryClass>(c));
    const int end = end_pixel(static_cast<float>(window.pixel_of(tracks().end)), pixels.width);
    for (int x = 0; x < end; ++x) {
      const MemoryPoint* point = points[static_cast<std::size_t>(x)];
      if (point == nullptr) continue;
      double below = 0;
      for (std::size_t c = 0; c < kMemoryClassCount; ++c) {
        const double above = below + static_cast<double>(point->amounts.by_class[c].value) / top;
        fill_column(x, below, above, color[c]);
        below = above;
      }
    }
    if (curve->capacity <= Bytes(0)) return;
    const int y = static_cast<int>(
        std::lround(pixels.height * (1 - static_cast<double>(curve->capacity.value) / top)));
    if (y < 0 || y >= pixels.height) return;
    for (int line = y; line < std::min(pixels.height, y + scaled(2)); ++line)
      for (int x = 0; x < pixels.width; ++x)
        if (x / scaled(4) % 2 == 0) pixels.row(line)[x] = colors().slower;
    if (scene.fonts == nullptr) return;
    constexpr double kGiB = 1 << 30;
    const LabelFont& font = scene.fonts->small;
    const std::string text =
        fmt::format("{:.0f} GiB", static_cast<double>(curve->capacity.value) / kGiB);
    const int below = y + scaled(3), width = font.width_of(text) + scaled(4);
    if (below + font.height() > pixels.height || width > pixels.width) return;
    for (int line = below; line < below + font.height(); ++line)
      std::fill_n(pixels.row(line), width, colors().background);
    font.draw(pixels, scaled(2), below, text, colors().slower);
  }

  void paint_in_flight() const {
    if (scene.content.in_flight == nullptr) return;
    const InFlightCurve& curve = scene.content.in_flight->of_row(row());
    if (curve.peak == 0) return;
    const std::vector<std::int32_t> peaks = peaks_of_pixels(curve, window);
    const Argb color = colors().slice[static_cast<std::size_t>(SliceKind::kBackwardInput)];
    for (int x = 0; x < pixels.width; ++x)
      fill_column(x, 0, 0.92 * peaks[static_cast<std::size_t>(x)] / curve.peak, color);
  }

  /// Mean busy fraction of the rank's streams, stacked by kind.
  void paint_links() {
    std::vector<double> below(static_cast<std::size_t>(pixels.width));
    double streams = 0;
    for (const TimelineRow& other : tracks().rows)
      streams += other.rank == lane.rank && !other.is_compute;
    for (std::size_t other = 0; other < tracks().rows.size(); ++other) {
      const TimelineRow& r = tracks().rows[other];
      if (r.rank != lane.rank || r.is_compute) continue;
      draw_lane(tracks(), other, window, nullptr, drawing_);
      const std::size_t channels = drawing_.channels.size();
      for (int x = 0; x < pixels.width; ++x)
        for (std::size_t c = 0; c < channels; ++c) {
          double& from = below[static_cast<std::size_t>(x)];
          const double share =
              drawing_.shares[static_cast<std::size_t>(x) * channels + c] / 65535.0 / streams;
          fill_column(x, from, from + share,
                      colors().slice[static_cast<std::size_t>(drawing_.channels[c])]);
          from += share;
        }
    }
  }

  /// Every measured slice at its position: up (red) is longer than predicted, down (green) shorter.
  void paint_difference() {
    const int middle = pixels.height / 2;
    std::fill(pixels.row(middle), pixels.row(middle) + pixels.width, colors().grid);
    if (scene.content.comparison == nullptr) return;
    const TimelineTracks& measured = *scene.content.measured;
    const auto other = static_cast<std::size_t>(lane.other);
    const std::vector<SlicePair>& pairs = scene.content.comparison->slices;
    const Nanoseconds offset = scene.content.comparison->offset;
    const auto first =
        static_cast<std::uint32_t>(measured.first_ending_after(other, window.from - offset));
    auto pair = std::partition_point(pairs.begin(), pairs.end(),
                                     [&](const SlicePair& p) { return p.measured < first; });
    for (; pair != pairs.end() && pair->measured < measured.row_begin[other + 1]; ++pair) {
      const Nanoseconds start = measured.start_of(pair->measured) + offset;
      if (start >= window.to) break;
      const Nanoseconds wanted = tracks().duration_of(pair->predicted);
      const Nanoseconds taken = measured.duration_of(pair->measured);
      const double change = ratio(taken - wanted, std::max(wanted, Nanoseconds(1)));
      const int left = std::max(0, static_cast<int>(window.pixel_of(start)));
      const int right =
          std::min(pixels.width,
                   std::max(left + 1, static_cast<int>(std::ceil(window.pixel_of(start + taken)))));
      // Full deflection, half the lane height, is a difference of 50 %.
      const double part = std::clamp(change / 0.5, -1.0, 1.0);
      const int reach = static_cast<int>(std::lround(std::abs(part) * (middle - 1)));
      for (int step = 1; step <= reach; ++step) {
        const int y = part > 0 ? middle - step : middle + step;
        if (y < 0 || y >= pixels.height) continue;
        const Argb color = part > 0 ? colors().slower : colors().faster;
        std::fill(pixels.row(y) + left, pixels.row(y) + std::max(left, right), color);
      }
    }
  }

  LaneDrawing drawing_;
};

}  // namespace

void paint_counter_lane(const LaneCanvas& canvas) { CounterLanePainter(canvas).paint(); }

/// Memory that is constant over the step is paler than memory that varies.
Argb lane_color(const TimelineColors& colors, MemoryClass memory_class) {
  constexpr Argb kVeil = 0xa0000000U;
  const Argb color = colors.memory[static_cast<std::size_t>(memory_class)];
  switch (memory_class) {
    case MemoryClass::kWeights:
    case MemoryClass::kGradients:
    case MemoryClass::kOptimizer:
    case MemoryClass::kReserved:
      return blended(color, (colors.row_stripe & 0xffffffU) | kVeil);
    default:
      return color;
  }
}

}  // namespace meshwright::gui
