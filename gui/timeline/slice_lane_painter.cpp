#include <algorithm>

#include "gui/timeline/box_label.hpp"
#include "gui/timeline/lane_painter.hpp"

namespace meshwright::gui {

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

bool is_later_chunk(const TimelineTracks& tracks, std::size_t row, std::size_t slice) {
  const std::int32_t stage = tracks.label_of(slice).stage;
  const std::int32_t pipeline_rank = tracks.rows[row].pipeline_rank;
  return is_pass(tracks.kind[slice]) && stage >= 0 && pipeline_rank >= 0 && stage != pipeline_rank;
}

namespace {

class SliceLanePainter : private LaneCanvas {
 public:
  explicit SliceLanePainter(const LaneCanvas& canvas) : LaneCanvas(canvas) {}

  void paint() {
    const bool is_compute = tracks().rows[row()].is_compute;
    draw_lane(tracks(), row(), window, style().bubble_causes ? causes() : nullptr, drawing_);
    PixelLine line(static_cast<std::size_t>(pixels.width));
    mix_line(drawing_, colors(), is_compute ? colors().idle : colors().row_stripe, line);
    paint_outside(line);
    for (int y = 0; y < pixels.height; ++y) std::copy(line.begin(), line.end(), pixels.row(y));
    for (const IdleBox& idle : drawing_.idle) hatch(idle);
    for (const SliceBox& box : drawing_.boxes) paint_box(box);
    paint_labels();
    if (style().critical_path && causes() != nullptr) paint_critical();
    if (scene.content.ghost != nullptr && !lane.is_measured) paint_ghost();
  }

 private:
  const TimelineCauses* causes() const {
    return lane.is_measured ? nullptr : scene.content.causes.get();
  }

  /// Time outside the timeline is not idle time.
  void paint_outside(PixelLine& line) const {
    const double begin = window.pixel_of(Nanoseconds(0)), end = window.pixel_of(tracks().end);
    const auto width = static_cast<double>(line.size());
    const auto left = static_cast<std::ptrdiff_t>(std::clamp(std::floor(begin), 0.0, width));
    const auto right = static_cast<std::ptrdiff_t>(std::clamp(std::ceil(end), 0.0, width));
    std::fill(line.begin(), line.begin() + left, colors().background);
    std::fill(line.begin() + std::max(left, right), line.end(), colors().background);
  }

  void hatch(const IdleBox& idle) const {
    const int step = std::max(4, scaled(7));
    const int left = first_pixel(idle.left), right = end_pixel(idle.right, pixels.width);
    // Anchor the pattern to time, so that it moves with the content.
    const auto shift = static_cast<int>(
        std::lround(std::fmod(window.pixel_of(Nanoseconds(0)), static_cast<double>(step))));
    for (int y = 0; y < pixels.height; ++y)
      for (int x = left; x < right; ++x)
        if (is_hatched(idle.cause, x - shift, y, step))
          pixels.row(y)[x] = blended(pixels.row(y)[x], colors().hatch);
  }

  Argb color_of(std::size_t slice) const {
    if (style().microbatch_colors && tracks().microbatch[slice] != kNoMicrobatch)
      return microbatch_color(tracks().microbatch[slice]);
    return colors().slice[static_cast<std::size_t>(tracks().kind[slice])];
  }

  void paint_box(const SliceBox& box) const {
    const Argb color = color_of(box.slice);
    const int left = first_pixel(box.left), right = end_pixel(box.right, pixels.width);
    if (left >= right) return;
    if (style().microbatch_colors) {
      // Partially covered edge pixels keep their blended color.
      const int from = std::max(0, static_cast<int>(std::ceil(box.left)));
      const int to = std::min(pixels.width, static_cast<int>(std::floor(box.right)));
      for (int y = 0; y < pixels.height; ++y)
        if (from < to) std::fill(pixels.row(y) + from, pixels.row(y) + to, color);
    }
    if (is_later_chunk(tracks(), row(), box.slice))
      for (int y = std::max(0, pixels.height - scaled(kChunkStripe)); y < pixels.height; ++y)
        std::fill(pixels.row(y) + left, pixels.row(y) + right, text_on(color));
    constexpr Argb kEdge = 0x48000000U;
    if (box.right - box.left >= 4 * style().scale && box.left >= 0)
      for (int y = 0; y < pixels.height; ++y)
        pixels.row(y)[left] = blended(pixels.row(y)[left], kEdge);
  }

  void paint_labels() const {
    if (scene.fonts == nullptr) return;
    const TextWidth width_of = [&](std::string_view text, bool is_small) {
      return scene.fonts->of(is_small).width_of(text);
    };
    const bool with_kind = kinds_fit(tracks(), drawing_.boxes, pixels.width, width_of);
    for (const SliceBox& box : drawing_.boxes) {
      if (box.right - box.left < kLabelWidth * style().scale) continue;
      const double left = std::max(0.0F, box.left);
      const double right = std::min(static_cast<float>(pixels.width), box.right);
      const BoxLabel label =
          box_label(tracks(), box.slice, label_room(left, right), with_kind, width_of);
      const LabelFont& font = scene.fonts->of(label.is_small);
      if (label.text.empty() || pixels.height < font.height() - 2) continue;
      const int x = static_cast<int>((left + right - font.width_of(label.text)) / 2);
      font.draw(pixels, x, (pixels.height - font.height()) / 2, label.text,
                text_on(color_of(box.slice)));
    }
  }

  /// Outlines the critical path and dims everything else.
  void paint_critical() {
    std::vector<bool> bright(static_cast<std::size_t>(pixels.width));
    const std::vector<std::uint32_t>& path = causes()->critical_of_row[row()];
    std::vector<std::pair<int, int>> outlines;
    auto at = std::partition_point(path.begin(), path.end(), [&](std::uint32_t s) {
      return tracks().end_of(s) <= window.from;
    });
    for (; at != path.end() && tracks().start_of(*at) < window.to; ++at) {
      const int left = std::max(0, static_cast<int>(window.pixel_of(tracks().start_of(*at))));
      const int right = std::min(
          pixels.width,
          std::max(left + 1, static_cast<int>(std::ceil(window.pixel_of(tracks().end_of(*at))))));
      if (left >= right) continue;
      std::fill(bright.begin() + left, bright.begin() + right, true);
      if (!outlines.empty() && left <= outlines.back().second)
        outlines.back().second = std::max(outlines.back().second, right);
      else
        outlines.emplace_back(left, right);
    }
    for (int y = 0; y < pixels.height; ++y)
      for (int x = 0; x < pixels.width; ++x)
        if (!bright[static_cast<std::size_t>(x)])
          pixels.row(y)[x] = blended(pixels.row(y)[x], colors().dim);
    for (const auto& [left, right] : outlines) outline(left, right, colors().critical, scaled(2));
  }

  void outline(int left, int right, Argb color, int thickness) const {
    const int bottom = pixels.height;
    for (int y = 0; y < bottom; ++y) {
      const bool edge = y < thickness || y >= bottom - thickness;
      for (int x = left; x < right; ++x)
        if (edge || x < left + thickness || x >= right - thickness)
          pixels.row(y)[x] = blended(pixels.row(y)[x], color);
    }
  }

  void paint_ghost() {
    const TimelineTracks& ghost = *scene.content.ghost;
    const TimelineRow& own = tracks().rows[row()];
    for (std::size_t other = 0; other < ghost.rows.size(); ++other) {
      if (ghost.rows[other].rank != own.rank || ghost.rows[other].stream != own.stream) continue;
      draw_lane(ghost, other, window, nullptr, drawing_);
      for (const SliceBox& box : drawing_.boxes)
        outline(first_pixel(box.left), end_pixel(box.right, pixels.width), colors().ghost,
                std::max(1, scaled(1)));
      return;
    }
  }

  LaneDrawing drawing_;
};

}  // namespace

void paint_slice_lane(const LaneCanvas& canvas) { SliceLanePainter(canvas).paint(); }

void mix_line(const LaneDrawing& drawing, const TimelineColors& colors, Argb idle,
              PixelLine& line) {
  const std::size_t channels = drawing.channels.size();
  std::array<Argb, kSliceKindCount> color{};
  for (std::size_t c = 0; c < channels; ++c)
    color[c] = colors.slice[static_cast<std::size_t>(drawing.channels[c])];
  for (std::size_t x = 0; x < line.size(); ++x) {
    const std::uint16_t* shares = channels == 0 ? nullptr : &drawing.shares[x * channels];
    std::uint32_t red = 0, green = 0, blue = 0, rest = kFullShare;
    for (std::size_t c = 0; c < channels; ++c) {
      const std::uint32_t share = std::min<std::uint32_t>(shares[c], rest);
      if (share == 0) continue;
      red += (color[c] >> 16 & 255) * share;
      green += (color[c] >> 8 & 255) * share;
      blue += (color[c] & 255) * share;
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

}  // namespace meshwright::gui
