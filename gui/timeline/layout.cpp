#include "gui/timeline/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/base/check.hpp"

namespace meshwright::gui {

Nanoseconds TimeWindow::time_at(double pixel) const {
  return from + Nanoseconds(static_cast<std::int64_t>(std::floor(pixel * nanoseconds_per_pixel())));
}

namespace {

/// Shifts the window into [-margin, end + margin]; longer windows are clamped to that range.
TimeWindow within(TimeWindow window, Nanoseconds end) {
  const Nanoseconds margin(std::max<std::int64_t>(end.value / 10, 50));
  const Nanoseconds most = end + margin * 2;
  if (window.span() >= most) return {-margin, end + margin, window.width};
  Nanoseconds shift;
  if (window.from < -margin) shift = -margin - window.from;
  if (window.to > end + margin) shift = end + margin - window.to;
  return {window.from + shift, window.to + shift, window.width};
}

}  // namespace

TimeWindow zoomed(const TimeWindow& window, Nanoseconds time, double factor, Nanoseconds end) {
  const auto longest = static_cast<double>(end.value) * 1.2 + 100;
  const double before = static_cast<double>(window.span().value);
  const double span =
      std::clamp(before * factor, static_cast<double>(kShortestWindow.value), longest);
  const double part = static_cast<double>((time - window.from).value) / before;
  const Nanoseconds from(time.value - std::llround(part * span));
  return within({from, from + Nanoseconds(std::llround(span)), window.width}, end);
}

TimeWindow panned(const TimeWindow& window, Nanoseconds by, Nanoseconds end) {
  return within({window.from + by, window.to + by, window.width}, end);
}

TimeWindow whole(Nanoseconds end, int width) {
  const Nanoseconds margin(end.value / 100);
  return {-margin, std::max(end + margin, -margin + kShortestWindow), width};
}

// ---- draw lists ---------------------------------------------------------------------------------
namespace {

/// Accumulates the busy fraction of every pixel by channel.
class PixelSums {
 public:
  PixelSums(int width, std::size_t channels)
      : width_(width), channels_(channels), sums_(static_cast<std::size_t>(width) * channels) {}

  /// Adds [left, right) in pixels, busy for a fraction of `weight`.
  void add(double left, double right, std::size_t channel, float weight) {
    left = std::max(left, 0.0);
    right = std::min(right, static_cast<double>(width_));
    if (left >= right) return;
    const auto first = static_cast<int>(left);
    const int last = static_cast<int>(right);
    if (first == last) {
      at(first, channel) += static_cast<float>(right - left) * weight;
      return;
    }
    at(first, channel) += static_cast<float>(first + 1 - left) * weight;
    for (int x = first + 1; x < last; ++x) at(x, channel) += weight;
    if (last < width_) at(last, channel) += static_cast<float>(right - last) * weight;
  }
  void write(std::vector<std::uint16_t>& shares) const {
    shares.resize(sums_.size());
    for (std::size_t i = 0; i < sums_.size(); ++i)
      // NOLINTNEXTLINE(bugprone-incorrect-roundings): never negative; lround() is a call per pixel
      shares[i] = static_cast<std::uint16_t>(std::min(sums_[i], 1.0F) * kFullShare + 0.5F);
  }

 private:
  float& at(int x, std::size_t channel) {
    return sums_[static_cast<std::size_t>(x) * channels_ + channel];
  }
  int width_;
  std::size_t channels_;
  std::vector<float> sums_;
};

/// The coarsest level with bins of at most one pixel; nullopt if even the finest bins are wider.
std::optional<std::size_t> level_for(const RowCoverage& coverage, double nanoseconds_per_pixel) {
  auto bin = static_cast<double>(coverage.base_bin.value);
  if (coverage.levels.empty() || bin > nanoseconds_per_pixel) return std::nullopt;
  std::size_t level = 0;
  while (level + 1 < coverage.levels.size() && bin * 2 <= nanoseconds_per_pixel) {
    bin *= 2;
    ++level;
  }
  return level;
}

void add_bins(const RowCoverage& coverage, std::size_t level, const TimeWindow& window,
              Nanoseconds end, PixelSums& sums) {
  const CoverageLevel& bins = coverage.levels[level];
  const std::int64_t bin = coverage.base_bin.value << level;
  const std::int64_t first = std::max<std::int64_t>(0, window.from.value / bin);
  const std::int64_t last =
      std::min(static_cast<std::int64_t>(bins.bins), window.to.value / bin + 1);
  const std::size_t channels = coverage.channels.size();
  const double pixels_per_nanosecond = 1.0 / window.nanoseconds_per_pixel();
  for (std::int64_t b = first; b < last; ++b) {
    const double left = static_cast<double>(b * bin - window.from.value) * pixels_per_nanosecond;
    // The last bin extends past the end of the timeline, where nothing runs.
    const std::int64_t width = std::max<std::int64_t>(1, std::min(bin, end.value - b * bin));
    const double right = left + static_cast<double>(width) * pixels_per_nanosecond;
    const float full = static_cast<float>(bin) / static_cast<float>(width) / kFullShare;
    const std::uint16_t* shares = &bins.shares[static_cast<std::size_t>(b) * channels];
    for (std::size_t c = 0; c < channels; ++c)
      if (shares[c] != 0) sums.add(left, right, c, static_cast<float>(shares[c]) * full);
  }
}

void add_slices(const TimelineTracks& tracks, std::size_t row, const TimeWindow& window,
                PixelSums& sums, LaneDrawing& drawing) {
  std::array<std::size_t, kSliceKindCount> channel{};
  for (std::size_t c = 0; c < drawing.channels.size(); ++c)
    channel[static_cast<std::size_t>(drawing.channels[c])] = c;
  const double scale = 1.0 / window.nanoseconds_per_pixel();
  const double edge = window.width + 1.0;
  const std::size_t end = tracks.row_begin[row + 1];
  for (std::size_t s = tracks.first_ending_after(row, window.from); s < end; ++s) {
    const std::int64_t start = tracks.start_ns[s] - window.from.value;
    const double left = static_cast<double>(start) * scale;
    if (left >= window.width) break;
    const double right = static_cast<double>(start + tracks.duration_of(s).value) * scale;
    sums.add(left, right, channel[static_cast<std::size_t>(tracks.kind[s])], 1.0F);
    if (right - left < kBoxWidth) {
      ++drawing.folded;
      continue;
    }
    drawing.boxes.push_back({static_cast<std::uint32_t>(s),
                             static_cast<float>(std::max(left, -1.0)),
                             static_cast<float>(std::min(right, edge))});
  }
}

void add_idle_spans(const std::vector<IdleSpan>& parts, const TimeWindow& window,
                    LaneDrawing& drawing) {
  auto part = std::partition_point(parts.begin(), parts.end(),
                                   [&](const IdleSpan& p) { return p.to <= window.from; });
  const double edge = window.width + 1.0;
  for (; part != parts.end() && part->from < window.to; ++part) {
    const double left = window.pixel_of(part->from), right = window.pixel_of(part->to);
    if (right - left < kHatchWidth) continue;
    drawing.idle.push_back({static_cast<float>(std::max(left, -1.0)),
                            static_cast<float>(std::min(right, edge)), part->cause});
  }
}

}  // namespace

void draw_lane(const TimelineTracks& tracks, std::size_t row, const TimeWindow& window,
               const TimelineCauses* causes, LaneDrawing& reuse) {
  const RowCoverage& coverage = tracks.coverage.rows[row];
  reuse.channels = coverage.channels;
  reuse.boxes.clear();
  reuse.idle.clear();
  reuse.folded = 0;
  PixelSums sums(window.width, coverage.channels.size());
  const auto level = level_for(coverage, window.nanoseconds_per_pixel());
  reuse.from_pyramid = level.has_value();
  if (level) {
    add_bins(coverage, *level, window, tracks.end, sums);
    reuse.folded =
        tracks.first_starting_from(row, window.to) - tracks.first_ending_after(row, window.from);
  } else {
    add_slices(tracks, row, window, sums, reuse);
  }
  sums.write(reuse.shares);
  if (causes != nullptr && row < causes->idle_of_row.size())
    add_idle_spans(causes->idle_of_row[row], window, reuse);
}

std::optional<std::size_t> slice_at_pixel(const TimelineTracks& tracks, std::size_t row,
                                          const TimeWindow& window, double x) {
  const double pixel = std::floor(x);
  const std::size_t end = tracks.row_begin[row + 1];
  if (const std::size_t middle = tracks.slice_at(row, window.time_at(pixel + 0.5)); middle < end)
    return middle;
  // The whole pixel plus up to one nanosecond, so that every drawn slice is found.
  const Nanoseconds from = window.time_at(pixel), to = window.time_at(pixel + 1) + Nanoseconds(1);
  std::optional<std::size_t> widest;
  Nanoseconds most(0);
  for (std::size_t s = tracks.first_ending_after(row, from); s < end && tracks.start_of(s) < to;
       ++s) {
    const Nanoseconds covered = std::min(to, tracks.end_of(s)) - std::max(from, tracks.start_of(s));
    if (covered > most) {
      most = covered;
      widest = s;
    }
  }
  return widest;
}

std::optional<Bubble> gap_at(const TimelineTracks& tracks, std::size_t row, Nanoseconds time) {
  const std::size_t begin = tracks.row_begin[row], end = tracks.row_begin[row + 1];
  if (begin == end || time < Nanoseconds(0) || time >= tracks.end) return std::nullopt;
  const std::size_t next = tracks.first_ending_after(row, time);
  if (next < end && tracks.start_of(next) <= time) return std::nullopt;
  Bubble gap{.row = static_cast<std::uint32_t>(row), .slice_after = -1, .from = {}, .to = {}};
  gap.from = next > begin ? tracks.end_of(next - 1) : Nanoseconds(0);
  gap.to = next < end ? tracks.start_of(next) : tracks.end;
  if (next < end) gap.slice_after = static_cast<std::int64_t>(next);
  return gap;
}

std::string to_text(const TimelineTracks& tracks, const LaneDrawing& drawing) {
  std::string text;
  for (const SliceBox& box : drawing.boxes)
    text +=
        fmt::format("box {} {:.1f}..{:.1f}\n", short_name(tracks, box.slice), box.left, box.right);
  for (const IdleBox& box : drawing.idle)
    text += fmt::format("idle {} {:.1f}..{:.1f}\n", name_of(box.cause), box.left, box.right);
  const std::size_t channels = drawing.channels.size();
  const std::size_t width = channels == 0 ? 0 : drawing.shares.size() / channels;
  for (std::size_t x = 0; x < width;) {
    const auto* pixel = &drawing.shares[x * channels];
    std::size_t until = x + 1;
    while (until < width && std::equal(pixel, pixel + channels, &drawing.shares[until * channels]))
      ++until;
    std::string mix;
    for (std::size_t c = 0; c < channels; ++c)
      if (pixel[c] != 0)
        mix += fmt::format(" {} {:.2f}", name_of(drawing.channels[c]),
                           static_cast<double>(pixel[c]) / kFullShare);
    text += fmt::format("pixels {}..{}:{}\n", x, until, mix.empty() ? " idle" : mix);
    x = until;
  }
  text += fmt::format("folded {}\n", drawing.folded);
  return text;
}

}  // namespace meshwright::gui
