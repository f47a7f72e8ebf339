#include "executor/parameters/run_layout.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/plan/weight_versions.hpp"

namespace meshwright {
namespace {

/// Whether the collective scatters sums of gradients: a reduce-scatter, or a round of the first
/// half of a ring.
bool scatters(const Collective& collective, int members) {
  if (collective.kind == CollectiveKind::kReduceScatter) return true;
  return collective.kind == CollectiveKind::kRingExchange && collective.first_round < members - 1;
}

/// Of pieces with the same first element only the largest counts; the others are sums over shard
/// groups.
void add_piece(std::vector<ParameterPiece>& pieces, const ParameterPiece& found) {
  for (ParameterPiece& known : pieces)
    if (known.all.begin == found.all.begin) {
      if (found.all.size() > known.all.size()) known = found;
      return;
    }
  pieces.push_back(found);
}

void put_in_order(std::vector<ParameterPiece>& pieces) {
  std::sort(pieces.begin(), pieces.end(), [](const ParameterPiece& a, const ParameterPiece& b) {
    return a.all.begin < b.all.begin;
  });
  std::int64_t end = 0, place = 0;
  for (ParameterPiece& piece : pieces) {
    MW_CHECK(piece.all.begin == end);
    end = piece.all.end;
    piece.place = place;
    place += piece.own.size();
  }
}

}  // namespace

std::int64_t RunLayout::own_elements() const {
  return pieces.empty() ? 0 : pieces.back().place + pieces.back().own.size();
}

Block block_after_ring(std::int64_t elements, int members, int index) {
  return block_of(elements, members, (index + 1) % members);
}

Block intersection(const Block& a, const Block& b) {
  const std::int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

RunLayouts layouts_of(const RunnableGraph& runnable, const Strategy& strategy, RankId rank,
                      int part) {
  RunLayouts layouts;
  const DataParallelKind kind = strategy.data_parallelism.kind;
  const bool one_process = kind == DataParallelKind::kOneProcess;
  const TaskGraph& graph = runnable.graph();
  bool splits_backward = false;
  for (const TaskId id : runnable.tasks_of(rank)) {
    const Task& task = graph.tasks[id.index()];
    splits_backward |= task.kind == TaskKind::kBackwardInput;
    if (task.kind != TaskKind::kCollective || strategy.zero == 0) continue;
    const Collective& collective = graph.works[task.work.index()].collective;
    const ParameterRange& range = collective.parameters;
    const std::vector<RankId>& members = runnable.members_of(task);
    const auto count = static_cast<int>(members.size());
    if (range.part != part || !scatters(collective, count)) continue;
    const auto me =
        static_cast<int>(std::find(members.begin(), members.end(), rank) - members.begin());
    const Block own = collective.kind == CollectiveKind::kReduceScatter
                          ? block_of(range.count, count, me)
                          : block_after_ring(range.count, count, me);
    add_piece(layouts[range.expert ? 1 : 0].pieces,
              {.all = {range.first, range.first + range.count},
               .own = {range.first + own.begin, range.first + own.end}});
  }
  const PipelineRankId position(
      coordinate_of(strategy.degrees, rank, strategy.model_parallelism.order).pipeline);
  for (RunLayout& layout : layouts) {
    put_in_order(layout.pieces);
    if (updates_without_flush(strategy))
      layout.weight_versions = weight_versions_of(strategy, position).held;
    layout.shards_gradients = strategy.zero >= 2 && !layout.pieces.empty();
    layout.shards_weights = strategy.zero >= 3 && !layout.pieces.empty();
    layout.splits_backward = splits_backward;
    layout.has_state = !has_servers(kind) && (!one_process || rank == RankId(0));
    layout.state_on_host = strategy.data_parallelism.offload_optimizer;
  }
  return layouts;
}

}  // namespace meshwright
