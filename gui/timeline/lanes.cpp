#include <algorithm>
#include <map>

#include "gui/timeline/layout.hpp"

namespace meshwright::gui {
namespace {

/// The rows of one rank, compute rows first.
struct RankRows {
  std::int32_t rank = -1, pipeline_rank = -1;
  bool is_replica = false;
  Nanoseconds busy;
  std::vector<std::size_t> rows;
};

/// The ranks to show. Counts folded replicas in `folded`.
std::vector<RankRows> shown_ranks(const TimelineTracks& tracks, const LaneOptions& options,
                                  std::size_t& folded) {
  std::vector<RankRows> ranks;
  std::map<std::int32_t, std::size_t> place;
  for (std::size_t row = 0; row < tracks.rows.size(); ++row) {
    const TimelineRow& r = tracks.rows[row];
    const auto [at, is_new] = place.try_emplace(r.rank, ranks.size());
    if (is_new)
      ranks.push_back({.rank = r.rank,
                       .pipeline_rank = r.pipeline_rank,
                       .is_replica = r.replica > 0,
                       .busy = {},
                       .rows = {}});
    RankRows& rank = ranks[at->second];
    rank.rows.push_back(row);
    if (r.is_compute && options.order == LaneOrder::kStraggler)
      rank.busy += total(busy_times(tracks, row, Nanoseconds(0), tracks.end));
  }
  if (options.fold_replicas)
    folded = std::erase_if(ranks, [](const RankRows& rank) { return rank.is_replica; });
  for (RankRows& rank : ranks)
    std::stable_partition(rank.rows.begin(), rank.rows.end(),
                          [&](std::size_t row) { return tracks.rows[row].is_compute; });
  std::stable_sort(ranks.begin(), ranks.end(), [&](const RankRows& a, const RankRows& b) {
    switch (options.order) {
      case LaneOrder::kRank:
        return a.rank < b.rank;
      case LaneOrder::kPipelineRank:
        return std::pair(a.pipeline_rank, a.rank) < std::pair(b.pipeline_rank, b.rank);
      case LaneOrder::kStraggler:
        return std::pair(-a.busy.value, a.rank) < std::pair(-b.busy.value, b.rank);
    }
    return false;
  });
  return ranks;
}

class Stack {
 public:
  explicit Stack(const LaneSizes& sizes) : sizes_(sizes) {}
  void add(Lane lane, int height) {
    lane.top = y_;
    lane.height = height;
    y_ += height + sizes_.gap;
    result.lanes.push_back(lane);
  }
  void space() { y_ += sizes_.rank_gap; }
  int y() const { return y_; }

  LaneArrangement result;

 private:
  const LaneSizes& sizes_;
  int y_ = 0;
};

Lane lane_of(const RankRows& rank, std::size_t row, bool leads, bool open) {
  return {.row = static_cast<std::int32_t>(row),
          .rank = rank.rank,
          .leads_rank = leads,
          .can_open = leads && rank.rows.size() > 1,
          .is_open = open};
}

int height_of(const TimelineRow& row, const LaneSizes& sizes) {
  return row.is_compute ? sizes.compute : sizes.stream;
}

void add_pinned(const TimelineTracks& tracks, const LaneOptions& options, Stack& stack) {
  for (const std::size_t row : options.pinned) {
    if (row >= tracks.rows.size()) continue;
    stack.add({.row = static_cast<std::int32_t>(row),
               .rank = tracks.rows[row].rank,
               .is_pinned = true,
               .leads_rank = true},
              height_of(tracks.rows[row], options.sizes));
  }
  if (stack.y() > 0) stack.space();
  stack.result.pinned_height = stack.y();
}

bool has_memory(const TimelineTracks& tracks, std::int32_t rank) {
  return std::any_of(tracks.memory.begin(), tracks.memory.end(),
                     [&](const MemoryCurveOfRank& curve) { return curve.rank == rank; });
}

void add_counters(const TimelineTracks& tracks, const RankRows& rank, const LaneOptions& options,
                  Stack& stack) {
  const auto row = static_cast<std::int32_t>(rank.rows.front());
  if (has_memory(tracks, rank.rank))
    stack.add({.kind = LaneKind::kMemory, .row = row, .rank = rank.rank}, options.sizes.counter);
  if (options.counters != LaneCounters::kAll) return;
  if (tracks.rows[rank.rows.front()].is_compute)
    stack.add({.kind = LaneKind::kInFlight, .row = row, .rank = rank.rank},
              options.sizes.counter / 2);
  if (rank.rows.size() > 1)
    stack.add({.kind = LaneKind::kLinks, .row = row, .rank = rank.rank}, options.sizes.counter / 2);
}

}  // namespace

LaneArrangement arrange_lanes(const TimelineTracks& tracks, const LaneOptions& options) {
  Stack stack(options.sizes);
  add_pinned(tracks, options, stack);
  for (const RankRows& rank : shown_ranks(tracks, options, stack.result.folded_ranks)) {
    const bool open = options.all_open || options.open_ranks.contains(rank.rank);
    // A rank without compute rows always shows its streams.
    std::size_t shown = 0;
    for (const std::size_t row : rank.rows) {
      const bool leads = shown == 0;
      if (!leads && !open && tracks.rows[rank.rows.front()].is_compute &&
          !tracks.rows[row].is_compute)
        continue;
      stack.add(lane_of(rank, row, leads, open), height_of(tracks.rows[row], options.sizes));
      ++shown;
    }
    const bool counted = options.counters != LaneCounters::kNone;
    if (counted) add_counters(tracks, rank, options, stack);
    if (open || counted) stack.space();
  }
  stack.result.height = stack.y();
  return std::move(stack.result);
}

LaneArrangement arrange_comparison(const TimelineTracks& predicted, const TimelineTracks& measured,
                                   const LaneOptions& options) {
  Stack stack(options.sizes);
  std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> measured_row;
  for (std::size_t row = 0; row < measured.rows.size(); ++row)
    measured_row.emplace(std::pair(measured.rows[row].rank, measured.rows[row].stream), row);
  std::set<std::size_t> paired;
  for (const RankRows& rank : shown_ranks(predicted, options, stack.result.folded_ranks)) {
    const bool open = options.all_open || options.open_ranks.contains(rank.rank);
    for (const std::size_t row : rank.rows) {
      if (!open && !predicted.rows[row].is_compute) continue;
      const int height = height_of(predicted.rows[row], options.sizes);
      const bool leads = predicted.rows[row].is_compute;
      stack.add(lane_of(rank, row, leads, open), height);
      const auto other = measured_row.find({rank.rank, predicted.rows[row].stream});
      if (other == measured_row.end()) continue;
      paired.insert(other->second);
      stack.add(
          {.row = static_cast<std::int32_t>(other->second), .rank = rank.rank, .is_measured = true},
          height);
      if (leads)
        stack.add({.kind = LaneKind::kDifference,
                   .row = static_cast<std::int32_t>(row),
                   .other = static_cast<std::int32_t>(other->second),
                   .rank = rank.rank},
                  options.sizes.difference);
      if (leads) stack.space();
    }
  }
  // Rows that only the measured trace has come last.
  for (std::size_t row = 0; row < measured.rows.size(); ++row)
    if (!paired.contains(row) && measured.rows[row].is_compute)
      stack.add({.row = static_cast<std::int32_t>(row),
                 .rank = measured.rows[row].rank,
                 .is_measured = true,
                 .leads_rank = true},
                height_of(measured.rows[row], options.sizes));
  stack.result.height = stack.y();
  return std::move(stack.result);
}

std::optional<std::size_t> lane_at(const LaneArrangement& arrangement, int y, int scroll) {
  const int document = y < arrangement.pinned_height ? y : y + scroll;
  if (y >= arrangement.pinned_height && document < arrangement.pinned_height) return std::nullopt;
  const auto after = std::upper_bound(arrangement.lanes.begin(), arrangement.lanes.end(), document,
                                      [](int at, const Lane& lane) { return at < lane.top; });
  if (after == arrangement.lanes.begin()) return std::nullopt;
  const Lane& lane = *(after - 1);
  if (document >= lane.top + lane.height) return std::nullopt;
  return static_cast<std::size_t>(after - arrangement.lanes.begin()) - 1;
}

}  // namespace meshwright::gui
