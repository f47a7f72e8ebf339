#include "gui/timeline/steps.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/median.hpp"

namespace meshwright::gui {
namespace {

class StepTracks {
 public:
  StepTracks(const TimelineTracks& all, const TraceStep& step) : all_(all), step_(step) {}

  TimelineTracks build() {
    for (std::size_t row = 0; row < all_.rows.size(); ++row) add_row(row);
    add_arrows();
    TimelineTracks& tracks = builder_.tracks();
    for (const MemoryCurveOfRank& curve : all_.memory) tracks.memory.push_back(during_step(curve));
    tracks.origin = all_.origin;
    tracks.title = all_.title;
    tracks.provenance = all_.provenance;
    tracks.notes = all_.notes;
    tracks.iterations = {step_.start};
    return builder_.finish();
  }

 private:
  /// A contiguous part of the slices of a row.
  struct Part {
    std::size_t begin = 0, end = 0;  ///< of all slices
    std::size_t first = 0;           ///< index of `begin` in the step
  };

  void add_row(std::size_t row) {
    builder_.add_row(all_.rows[row]);
    const Part part{.begin = all_.first_starting_from(row, step_.start),
                    .end = all_.first_starting_from(row, step_.end),
                    .first = builder_.slice_count()};
    for (std::size_t s = part.begin; s < part.end; ++s)
      builder_.add({.start_ns = all_.start_ns[s],
                    .duration_ns = all_.duration_of(s).value,
                    .label = label_of(all_.label_of(s)),
                    .kind = all_.kind[s],
                    .microbatch = all_.microbatch[s]});
    parts_.push_back(part);
  }

  std::uint32_t label_of(const SliceLabel& label) {
    const auto index = static_cast<std::size_t>(&label - all_.labels.data());
    if (!labels_[index]) labels_[index] = builder_.label(label.name, label.stage);
    return *labels_[index];
  }

  std::optional<std::uint32_t> in_step(std::uint32_t slice) const {
    const Part& part = parts_[all_.row_of(slice)];
    if (slice < part.begin || slice >= part.end) return std::nullopt;
    return static_cast<std::uint32_t>(part.first + slice - part.begin);
  }

  void add_arrows() {
    for (const SliceArrow& arrow : all_.arrows)
      if (const auto from = in_step(arrow.from), to = in_step(arrow.to); from && to)
        builder_.tracks().arrows.push_back({*from, *to});
  }

  /// Starts with what is held when the step starts.
  MemoryCurveOfRank during_step(const MemoryCurveOfRank& curve) const {
    MemoryCurveOfRank part{.rank = curve.rank, .capacity = curve.capacity, .points = {}};
    const auto first = std::ranges::upper_bound(curve.points, step_.start, {}, &MemoryPoint::time);
    const auto last = std::ranges::lower_bound(curve.points, step_.end, {}, &MemoryPoint::time);
    if (first != curve.points.begin())
      part.points.push_back({.time = step_.start, .amounts = std::prev(first)->amounts});
    part.points.insert(part.points.end(), first, std::max(first, last));
    return part;
  }

  const TimelineTracks& all_;
  const TraceStep& step_;
  TracksBuilder builder_;
  std::vector<Part> parts_;  ///< by row
  std::vector<std::optional<std::uint32_t>> labels_ =
      std::vector<std::optional<std::uint32_t>>(all_.labels.size());
};

}  // namespace

std::vector<TraceStep> steps_of(const TimelineTracks& tracks) {
  std::vector<TraceStep> steps;
  for (const Nanoseconds start : tracks.iterations) {
    if (start >= tracks.end) break;
    if (!steps.empty()) steps.back().end = start;
    steps.push_back({start, tracks.end});
  }
  if (steps.empty()) steps.push_back({Nanoseconds(0), tracks.end});
  return steps;
}

std::size_t median_step(const std::vector<TraceStep>& steps) {
  MW_CHECK(!steps.empty());
  if (steps.size() == 1) return 0;
  std::vector<std::pair<Nanoseconds, std::size_t>> by_duration;
  for (std::size_t i = 1; i < steps.size(); ++i) by_duration.emplace_back(steps[i].duration(), i);
  return upper_median(std::move(by_duration)).second;
}

TimelineTracks tracks_of_step(const TimelineTracks& tracks, const TraceStep& step) {
  return StepTracks(tracks, step).build();
}

}  // namespace meshwright::gui
