// One representative per pipeline rank (and share of the batch), or all ranks.
#include "core/lowering/ranks.hpp"

#include <utility>

#include "core/lowering/passes.hpp"
#include "core/lowering/replicated_graph.hpp"

namespace meshwright {

std::vector<RankInfo> ranks_of(const LoweringContext& context, std::int64_t replicas) {
  const std::int64_t stage_ranks = context.groups.stage_ranks;
  const Strategy& strategy = context.strategy;
  std::vector<RankInfo> ranks;
  ranks.reserve(static_cast<std::size_t>(context.placement.devices * replicas));
  for (int d = 0; d < context.placement.devices; ++d)
    for (std::int64_t replica = 0; replica < replicas; ++replica) {
      RankInfo info;
      info.rank = RankId(static_cast<std::int32_t>(rank_of(context.groups, d, replica)));
      info.coordinate =
          coordinate_of(strategy.degrees, info.rank, strategy.model_parallelism.order);
      info.device = DeviceId(info.rank.value);  // ranks fill the devices in order
      info.multiplicity = static_cast<std::int32_t>(stage_ranks / replicas);
      info.resident = context.resident[static_cast<std::size_t>(d)];
      info.allocator_slack = context.options.memory.allocator_slack;
      ranks.push_back(info);
    }
  return ranks;
}

void add_representatives(LoweringContext& context) { context.graph().ranks = ranks_of(context, 1); }

void unfold_ranks(LoweringContext& context) {
  const std::int64_t replicas = context.groups.stage_ranks;
  if (!context.shares.empty()) {
    const ReplicatedGraph all{std::move(context.folded), replicas, ranks_of(context, replicas),
                              std::move(context.shares)};
    context.graph() = context.options.ranks == RankSet::kAll
                          ? graph_of_all_ranks(all)
                          : graph_of_classes(all, classes_of_shares(all.shares)).graph;
    return;
  }
  if (context.options.ranks != RankSet::kAll || replicas == 1 ||
      !reduces_among_replicas(context.strategy))
    return;
  context.graph() = unfold(context.folded, replicas);
  context.graph().ranks = ranks_of(context, replicas);
}

}  // namespace meshwright
