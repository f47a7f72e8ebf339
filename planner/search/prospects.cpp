#include "planner/search/prospects.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/base/check.hpp"
#include "core/lowering/lower.hpp"
#include "planner/search/bounds.hpp"
#include "planner/search/parallel_for.hpp"
#include "planner/search/trainer_choices.hpp"

namespace meshwright {
namespace {

/// Candidates with equal keys have the same local work. Data and pipeline degrees only affect the
/// placement of context groups, expert groups, and tensor groups that span nodes.
auto shape_key(const Candidate& c, int devices_per_node) {
  ParallelDegrees degrees = c.degrees;
  degrees.chunks = 1;
  const bool placed = std::ranges::any_of(kLayerGroups, [&](const ProcessGroup& group) {
    return degrees.*group.size > (group.size == kTensorSize.size ? devices_per_node : 1);
  });
  if (!placed) degrees.data = degrees.pipeline = 1;
  return std::tuple(degrees, c.sequence_parallel, c.micro_batch,
                    recomputes_operators(c.recompute.kind) ? c.recompute.kind : RecomputeKind{});
}
using ShapeKey = decltype(shape_key(Candidate{}, 1));

/// Layers, number of parts, and whether every block is recomputed.
using CutKey = std::tuple<const LayerPasses*, int, bool>;
CutKey cut_key(const Prospect& prospect) {
  return {prospect.layers.get(), prospect.candidate.parts,
          prospect.candidate.recompute.kind == RecomputeKind::kFull};
}

/// Computes each distinct value once, in parallel, and shares it among its users.
template <class Key, class Value>
class SharedValues {
 public:
  /// Registers `user` for the value of `key`.
  void ask(const Key& key, std::size_t user) {
    const auto [at, is_new] = index_.try_emplace(key, users_.size());
    if (is_new) users_.emplace_back();
    users_[at->second].push_back(user);
  }
  /// Calls value_for(first user) for every distinct key, then give(user, value) for every user.
  template <class ValueFor, class Give>
  void settle(int threads, const ValueFor& value_for, const Give& give) {
    std::vector<std::shared_ptr<const Value>> values(users_.size());
    parallel_for(users_.size(), threads, [&](std::size_t i) {
      values[i] = std::make_shared<const Value>(value_for(users_[i].front()));
    });
    for (std::size_t i = 0; i < users_.size(); ++i)
      for (const std::size_t user : users_[i]) give(user, values[i]);
  }

 private:
  std::map<Key, std::size_t> index_;
  std::vector<std::vector<std::size_t>> users_;  ///< by distinct key, in order of registration
};

/// True if the schedules of the rule contain I and W passes, judged by the smallest valid one.
bool splits_backward(const ScheduleRule& rule) {
  ScheduleRequest request;
  request.devices = 2;
  for (request.chunks = 1; request.chunks <= 2; ++request.chunks)
    for (request.microbatches = 1; request.microbatches <= 16; ++request.microbatches) {
      if (rule.problem(request)) continue;
      for (const std::vector<Action>& order : rule.generate(request).orders)
        for (const Action& action : order)
          if (action.pass == Pass::kBackwardInput || action.pass == Pass::kBackwardWeight)
            return true;
      return false;
    }
  return true;  // unknown: use the weaker bound
}

/// Candidates with equal keys have the same end of a step: parameters per rank and data groups.
auto step_end_key(const Prospect& prospect) {
  const Candidate& candidate = prospect.candidate;
  return std::tuple(candidate.degrees, candidate.zero, candidate.rule, *prospect.blocks_per_stage);
}
using StepEndKey = decltype(step_end_key(Prospect{}));

/// True if the tasks after the last gradient run one after another, as step_end_times() assumes.
bool ends_in_a_row(const DataParallelism& data) {
  const bool together =
      data.kind == DataParallelKind::kCollective || data.kind == DataParallelKind::kRing;
  return together && !data.offload_optimizer;
}

/// The end of a step, from a step with the smallest number of micro-batches that the schedule
/// supports.
StepEndTimes step_end_of(const Prospect& prospect, const SearchJob& job) {
  const Candidate& candidate = prospect.candidate;
  Plan probe{strategy_of(candidate, job.goal, job.fixed), *prospect.blocks_per_stage};
  std::int64_t fewest = 1;
  while (candidate.rule->problem(request_of(candidate.degrees, fewest))) ++fewest;
  probe.strategy.global_batch =
      fewest * candidate.micro_batch * std::int64_t{candidate.degrees.data};
  if (!ends_in_a_row(probe.strategy.data_parallelism)) {  // weaker, but still a bound
    StepEndTimes none;
    none.reduction.assign(static_cast<std::size_t>(candidate.degrees.pipeline), Ticks());
    return none;
  }
  const TaskGraph graph = lower(probe, job.model, job.cluster);
  return step_end_times(graph, price_works(graph.parts, graph.works, job.cost_model));
}

}  // namespace

LayerTimes times_to_cut(const LayerPasses& layers, const Recompute& recompute) {
  return layer_times(recompute.kind == RecomputeKind::kFull ? layers.recomputed : layers.plain);
}

Ticks bound_of(const Prospect& prospect, std::int64_t microbatches) {
  const Candidate& candidate = prospect.candidate;
  Recompute recompute = candidate.recompute;
  if (recompute.kind == RecomputeKind::kBlocks && recompute.blocks_per_stage.empty())
    recompute.blocks = std::max(1, recompute.blocks);
  const std::vector<PassTimes> parts =
      stage_passes(*prospect.layers, *prospect.blocks_per_stage, recompute);
  return step_bound(candidate.rule->placement(request_of(candidate.degrees, microbatches)), parts,
                    microbatches, prospect.splits_backward, *prospect.step_end);
}

namespace {

/// For heterogeneous clusters, the minimum over node types for each layer: bounds must not be too
/// high.
LayerPasses fastest_passes(const Strategy& strategy, const SearchJob& job) {
  const auto on_kind = [&](std::int32_t kind) {
    return layer_passes(strategy, job.model, job.cluster, job.cost_model.on_nodes(kind));
  };
  if (is_homogeneous(job.cluster)) return on_kind(-1);
  LayerPasses least = on_kind(0);
  const auto take_least = [](std::vector<PassTimes>& least_of, const std::vector<PassTimes>& more) {
    for (std::size_t i = 0; i < least_of.size(); ++i) {
      least_of[i].forward = std::min(least_of[i].forward, more[i].forward);
      least_of[i].backward = std::min(least_of[i].backward, more[i].backward);
      least_of[i].backward_input = std::min(least_of[i].backward_input, more[i].backward_input);
    }
  };
  for (std::size_t kind = 1; kind < job.cluster.groups.size(); ++kind) {
    const LayerPasses passes = on_kind(static_cast<std::int32_t>(kind));
    take_least(least.plain, passes.plain);
    take_least(least.recomputed, passes.recomputed);
  }
  return least;
}

void settle_layers(const SearchJob& job, std::vector<Prospect>& prospects) {
  // With another rank order or heterogeneous nodes, the placement of all groups may differ.
  const bool is_usual =
      job.fixed.model_parallelism.order == RankOrder{} && is_homogeneous(job.cluster);
  const int devices_per_node =
      is_usual ? used_devices_per_node(job.cluster, job.goal.gpus).value_or(0) : 0;
  SharedValues<ShapeKey, LayerPasses> layers;
  for (std::size_t i = 0; i < prospects.size(); ++i)
    layers.ask(shape_key(prospects[i].candidate, devices_per_node), i);
  layers.settle(
      job.threads,
      [&](std::size_t user) {
        return fastest_passes(strategy_of(prospects[user].candidate, job.goal, job.fixed), job);
      },
      [&](std::size_t user, const auto& value) { prospects[user].layers = value; });
}

void settle_cuts(const SearchJob& job, std::vector<Prospect>& prospects) {
  SharedValues<CutKey, std::vector<int>> cuts;
  for (std::size_t i = 0; i < prospects.size(); ++i) cuts.ask(cut_key(prospects[i]), i);
  cuts.settle(
      job.threads,
      [&](std::size_t user) {
        const Prospect& prospect = prospects[user];
        if (job.fixed.trainer && !cuts_freely(*job.fixed.trainer))
          return even_cut(block_count(job.model), prospect.candidate.parts);
        return cut_blocks(times_to_cut(*prospect.layers, prospect.candidate.recompute),
                          prospect.candidate.parts);
      },
      [&](std::size_t user, const auto& value) { prospects[user].blocks_per_stage = value; });
}

void settle_step_ends(const SearchJob& job, std::vector<Prospect>& prospects) {
  SharedValues<StepEndKey, StepEndTimes> step_ends;
  for (std::size_t i = 0; i < prospects.size(); ++i) step_ends.ask(step_end_key(prospects[i]), i);
  step_ends.settle(
      job.threads, [&](std::size_t user) { return step_end_of(prospects[user], job); },
      [&](std::size_t user, const auto& value) { prospects[user].step_end = value; });
}

void note_split_backwards(std::vector<Prospect>& prospects) {
  std::map<const ScheduleRule*, bool> splits;
  for (Prospect& prospect : prospects) {
    const auto [at, is_new] = splits.try_emplace(prospect.candidate.rule, false);
    if (is_new) at->second = splits_backward(*at->first);
    prospect.splits_backward = at->second;
  }
}

}  // namespace

std::vector<Prospect> appraise(const std::vector<Candidate>& candidates, const SearchJob& job) {
  std::vector<Prospect> prospects(candidates.size());
  for (std::size_t i = 0; i < candidates.size(); ++i) prospects[i].candidate = candidates[i];
  settle_layers(job, prospects);
  settle_cuts(job, prospects);
  settle_step_ends(job, prospects);
  note_split_backwards(prospects);
  parallel_for(prospects.size(), job.threads, [&](std::size_t i) {
    prospects[i].bound = bound_of(prospects[i], microbatches_of(prospects[i].candidate, job.goal));
  });
  return prospects;
}

}  // namespace meshwright
