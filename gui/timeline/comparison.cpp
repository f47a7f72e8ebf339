#include "gui/timeline/comparison.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <tuple>

namespace meshwright::gui {
namespace {

using RowKey = std::pair<std::int32_t, std::int32_t>;  ///< rank, stream
/// Kind, stage, micro-batch, and the number of earlier slices on the row with the same three.
using SliceKey = std::tuple<SliceKind, std::int32_t, std::uint16_t, int>;

RowKey key_of(const TimelineRow& row) { return {row.rank, row.stream}; }

std::map<SliceKey, std::uint32_t> slices_by_key(const TimelineTracks& tracks, std::size_t row) {
  std::map<SliceKey, std::uint32_t> slices;
  std::map<SliceKey, int> seen;
  for (std::size_t s = tracks.row_begin[row]; s < tracks.row_begin[row + 1]; ++s) {
    SliceKey key{tracks.kind[s], tracks.label_of(s).stage, tracks.microbatch[s], 0};
    std::get<3>(key) = seen[key]++;
    slices.emplace(key, static_cast<std::uint32_t>(s));
  }
  return slices;
}

void pair_slices(const TimelineTracks& predicted, const TimelineTracks& measured,
                 const RowPair& rows, TimelineComparison& result) {
  const auto of_predicted = slices_by_key(predicted, static_cast<std::size_t>(rows.predicted));
  const auto of_measured = slices_by_key(measured, static_cast<std::size_t>(rows.measured));
  std::size_t paired = 0;
  for (const auto& [key, slice] : of_measured)
    if (const auto at = of_predicted.find(key); at != of_predicted.end()) {
      result.slices.push_back({at->second, slice});
      ++paired;
    }
  result.predicted_alone += of_predicted.size() - paired;
  result.measured_alone += of_measured.size() - paired;
}

std::optional<Nanoseconds> first_forward(const TimelineTracks& tracks) {
  std::optional<Nanoseconds> first;
  for (std::size_t row = 0; row < tracks.rows.size(); ++row)
    for (std::size_t s = tracks.row_begin[row]; s < tracks.row_begin[row + 1]; ++s)
      if (tracks.kind[s] == SliceKind::kForward) {
        first = std::min(first.value_or(tracks.start_of(s)), tracks.start_of(s));
        break;
      }
  return first;
}

Nanoseconds iteration_start(const TimelineTracks& tracks) {
  return tracks.iterations.empty() ? Nanoseconds(0) : tracks.iterations.front();
}

Nanoseconds offset_of(const TimelineTracks& predicted, const TimelineTracks& measured,
                      ComparisonAlignment alignment, Nanoseconds free_offset) {
  switch (alignment) {
    case ComparisonAlignment::kIterationStart:
      return iteration_start(predicted) - iteration_start(measured);
    case ComparisonAlignment::kFirstForward: {
      const auto p = first_forward(predicted), m = first_forward(measured);
      return p && m ? *p - *m : Nanoseconds(0);
    }
    case ComparisonAlignment::kFreeOffset:
      return free_offset;
  }
  return free_offset;
}

}  // namespace

TimelineComparison compare_tracks(const TimelineTracks& predicted, const TimelineTracks& measured,
                                  ComparisonAlignment alignment, Nanoseconds free_offset) {
  TimelineComparison result;
  std::map<RowKey, std::int32_t> measured_rows;
  for (std::size_t row = 0; row < measured.rows.size(); ++row)
    measured_rows.emplace(key_of(measured.rows[row]), static_cast<std::int32_t>(row));
  for (std::size_t row = 0; row < predicted.rows.size(); ++row) {
    RowPair pair{.predicted = static_cast<std::int32_t>(row), .measured = -1};
    if (const auto at = measured_rows.find(key_of(predicted.rows[row]));
        at != measured_rows.end()) {
      pair.measured = at->second;
      measured_rows.erase(at);
      pair_slices(predicted, measured, pair, result);
    } else {
      result.predicted_alone += predicted.row_begin[row + 1] - predicted.row_begin[row];
    }
    result.rows.push_back(pair);
  }
  for (const auto& [key, row] : measured_rows) {
    const auto r = static_cast<std::size_t>(row);
    result.rows.push_back({.predicted = -1, .measured = row});
    result.measured_alone += measured.row_begin[r + 1] - measured.row_begin[r];
  }
  std::sort(result.slices.begin(), result.slices.end(),
            [](const SlicePair& a, const SlicePair& b) { return a.measured < b.measured; });

  result.offset = offset_of(predicted, measured, alignment, free_offset);
  double apart = 0;
  for (const SlicePair& pair : result.slices)
    apart += std::abs(static_cast<double>(
        (measured.start_of(pair.measured) + result.offset - predicted.start_of(pair.predicted))
            .value));
  if (!result.slices.empty())
    result.residual =
        Nanoseconds(static_cast<std::int64_t>(apart / static_cast<double>(result.slices.size())));
  return result;
}

}  // namespace meshwright::gui
