#include "planner/search/mixed_stages.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "core/plan/job_groups.hpp"
#include "planner/search/unequal_stages.hpp"

namespace meshwright {
namespace {

void take_least(PassTimes& least, const PassTimes& other) {
  least.forward = std::min(least.forward, other.forward);
  least.backward = std::min(least.backward, other.backward);
  least.backward_input = std::min(least.backward_input, other.backward_input);
}

void take_least(LayerPasses& least, const LayerPasses& other) {
  take_least(least.embedding, other.embedding);
  take_least(least.head, other.head);
  for (std::size_t run = 0; run < least.blocks.size(); ++run) {
    take_least(least.blocks[run].plain, other.blocks[run].plain);
    take_least(least.blocks[run].recomputed, other.blocks[run].recomputed);
  }
}

const LayerPasses& passes_on(const MixedStages& mixed, std::int32_t kind) {
  return mixed.passes[static_cast<std::size_t>(kind)];
}

LayerTimes times_on(const LayerPasses& passes, bool recomputed, bool shares_ends) {
  return layer_times(shares_ends ? without_ends(passes) : passes, recomputed);
}

/// By type: no limit for devices with the most memory, the largest stage of the others less relief.
std::vector<int> limits(const MixedStages& mixed, std::span<const std::int32_t> kinds_of_parts,
                        std::span<const int> cut, int relief) {
  const Bytes largest = *std::ranges::max_element(mixed.memory);
  std::vector<int> most(mixed.passes.size(), 0);
  for (std::size_t part = 0; part < cut.size(); ++part) {
    int& blocks = most[static_cast<std::size_t>(kinds_of_parts[part])];
    blocks = std::max(blocks, cut[part]);
  }
  for (int& blocks : most) blocks = std::max(1, blocks - blocks * relief / kReliefParts);
  for (std::size_t rank = 0; rank < mixed.kinds.size(); ++rank)
    if (mixed.memory[rank] == largest)
      most[static_cast<std::size_t>(mixed.kinds[rank])] = std::numeric_limits<int>::max();
  return most;
}

}  // namespace

LayerCosts on_all_kinds(std::span<const LayerCosts> by_kind) {
  LayerCosts costs;
  for (const LayerCosts& on_kind : by_kind) costs.mixed.passes.push_back(on_kind.passes);
  costs.memory = by_kind.back().memory;
  return costs;
}

LayerCosts mixed_layer_costs(const LayerCosts& on_all_kinds, const Strategy& strategy,
                             const Cluster& cluster) {
  const JobGroups groups = job_groups_of(strategy, cluster);
  LayerCosts costs{.passes = {}, .memory = on_all_kinds.memory};
  costs.mixed = {.kinds = groups.kind_of_position,
                 .memory = groups.memory_of_position,
                 .passes = std::vector<LayerPasses>(on_all_kinds.mixed.passes.size())};
  for (const std::int32_t kind : costs.mixed.kinds) {
    LayerPasses& passes = costs.mixed.passes[static_cast<std::size_t>(kind)];
    if (passes != LayerPasses()) continue;
    passes = passes_on(on_all_kinds.mixed, kind);
    if (costs.passes == LayerPasses())
      costs.passes = passes;
    else
      take_least(costs.passes, passes);
  }
  return costs;
}

std::vector<std::int32_t> kinds_of_parts(const MixedStages& mixed, const Placement& placement) {
  std::vector<std::int32_t> kinds(static_cast<std::size_t>(model_parts(placement)), -1);
  for (std::size_t stage = 0; stage < placement.part_of_stage.size(); ++stage) {
    std::int32_t& kind = kinds[static_cast<std::size_t>(placement.part_of_stage[stage])];
    if (kind < 0) kind = mixed.kinds[placement.device_of_stage[stage].index()];
  }
  return kinds;
}

std::vector<std::vector<int>> mixed_cuts(const MixedStages& mixed,
                                         std::span<const std::int32_t> kinds_of_parts,
                                         bool recomputed, bool shares_ends) {
  UnequalStages stages;
  for (const LayerPasses& passes : mixed.passes)
    stages.of_kind.push_back(times_on(passes, recomputed, shares_ends));
  stages.kind_of_stage.assign(kinds_of_parts.begin(), kinds_of_parts.end());
  std::vector<std::vector<int>> cuts{cut_blocks_for(stages)};
  if (std::ranges::adjacent_find(mixed.memory, std::not_equal_to<>()) == mixed.memory.end())
    return cuts;
  for (int relief = 1; relief < kReliefs; ++relief) {
    stages.most_of_kind = limits(mixed, kinds_of_parts, cuts.front(), relief);
    cuts.push_back(cut_blocks_for(stages));
  }
  return cuts;
}

std::vector<PassTimes> mixed_stage_passes(const MixedStages& mixed,
                                          std::span<const std::int32_t> kinds_of_parts,
                                          std::span<const int> cut, const Recompute& recompute,
                                          bool shares_ends) {
  std::vector<PassTimes> stages(cut.size());
  for (std::size_t kind = 0; kind < mixed.passes.size(); ++kind) {
    const LayerPasses& passes = mixed.passes[kind];
    if (passes == LayerPasses()) continue;
    const std::vector<PassTimes> on_kind =
        stage_passes(shares_ends ? without_ends(passes) : passes, cut, recompute);
    for (std::size_t part = 0; part < cut.size(); ++part)
      if (kinds_of_parts[part] == static_cast<std::int32_t>(kind)) stages[part] = on_kind[part];
  }
  return stages;
}

Ticks busiest_rank_bound(const MixedStages& mixed, bool recomputed, bool shares_ends) {
  const auto pass = [&](const LayerRun& run) {
    const PassTimes& times = recomputed ? run.recomputed : run.plain;
    return static_cast<double>((times.forward + times.backward).value);
  };
  const auto both = [](const PassTimes& times) {
    return static_cast<double>((times.forward + times.backward).value);
  };
  std::vector<double> weights(mixed.passes.size(), 0);
  double sum = 0;
  for (const std::int32_t kind : mixed.kinds) {
    double blocks = 0;
    for (const LayerRun& run : passes_on(mixed, kind).blocks) blocks += run.count * pass(run);
    if (blocks <= 0) return {};
    weights[static_cast<std::size_t>(kind)] = 1 / blocks;
    sum += 1 / blocks;
  }
  const auto least = [&](const auto& time_on) {
    double found = std::numeric_limits<double>::max();
    for (std::size_t kind = 0; kind < weights.size(); ++kind)
      if (weights[kind] > 0) found = std::min(found, weights[kind] * time_on(mixed.passes[kind]));
    return found;
  };
  double total = 0;
  if (!shares_ends) {
    total += least([&](const LayerPasses& passes) { return both(passes.embedding); });
    total += least([&](const LayerPasses& passes) { return both(passes.head); });
  }
  const std::vector<LayerRun>& runs = passes_on(mixed, mixed.kinds.front()).blocks;
  for (std::size_t r = 0; r < runs.size(); ++r)
    total +=
        runs[r].count * least([&](const LayerPasses& passes) { return pass(passes.blocks[r]); });
  constexpr double kRounding = 1e-9;  // of sums of doubles: the bound stays one
  return Ticks(static_cast<std::int64_t>(std::floor(total / sum * (1 - kRounding))));
}

}  // namespace meshwright
