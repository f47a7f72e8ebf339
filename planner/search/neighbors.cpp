#include "planner/search/neighbors.hpp"

#include <fmt/format.h>

#include "core/schedule/schedule.hpp"
#include "planner/search/search.hpp"

namespace meshwright {
namespace {

struct Neighbor {
  std::string change;
  Strategy strategy;
};

/// Changes of one flag that do not change the number of GPUs.
void add_flag_changes(const Strategy& base, std::vector<Neighbor>& neighbors) {
  const auto add = [&](std::string change, auto edit) {
    Strategy changed = base;
    edit(changed);
    if (changed != base) neighbors.push_back({std::move(change), std::move(changed)});
  };
  for (const int micro_batch : {base.micro_batch / 2, 2 * base.micro_batch})
    if (micro_batch >= 1)
      add(fmt::format("--micro-batch {}", micro_batch),
          [=](Strategy& s) { s.micro_batch = micro_batch; });
  for (const RecomputeKind kind :
       {RecomputeKind::kNone, RecomputeKind::kSelective, RecomputeKind::kFull}) {
    const Recompute recompute{.kind = kind, .blocks = 0};
    add(fmt::format("--recompute {}", to_text(recompute)),
        [=](Strategy& s) { s.recompute = recompute; });
  }
  const bool replicated = replica_count(base.degrees) > 1;
  for (const int zero : {0, 1, 2, 3})
    if (zero <= 1 || replicated)
      add(fmt::format("--zero {}", zero), [=](Strategy& s) { s.zero = zero; });
  for (const BucketRule rule : {BucketRule::kNone, BucketRule::kPyTorch}) {
    const GradientBuckets buckets{.rule = rule, .bytes = {}};
    if (replicated)
      add(fmt::format("--bucket {}", to_text(buckets)),
          [=](Strategy& s) { s.data_parallelism.buckets = buckets; });
  }
  add(base.sequence_parallel ? "--no-sequence-parallel" : "--sequence-parallel",
      [](Strategy& s) { s.sequence_parallel = !s.sequence_parallel; });
  for (const ScheduleRule& rule : schedule_rules())
    if (rule.updates == UpdateTime::kAfterFlush)  // others change the result of training
      add(fmt::format("--schedule {}", rule.name),
          [&](Strategy& s) { s.schedule = std::string(rule.name); });
}

/// Doubles one parallel size and halves another.
void add_split_changes(const Strategy& base, std::vector<Neighbor>& neighbors) {
  for (const ParallelSize& more : kDescribedSizes)
    for (const ParallelSize& less : kDescribedSizes) {
      if (!spans_ranks(more) || !spans_ranks(less) || more.size == less.size ||
          base.degrees.*less.size % 2 != 0)
        continue;
      Strategy changed = base;
      changed.degrees.*more.size *= 2;
      changed.degrees.*less.size /= 2;
      neighbors.push_back({fmt::format("--{} {} --{} {}", more.key, changed.degrees.*more.size,
                                       less.key, changed.degrees.*less.size),
                           changed});
    }
}

}  // namespace

std::vector<EvaluatedNeighbor> evaluate_neighbors(const TrainingJob& job) {
  std::vector<Neighbor> neighbors;
  add_flag_changes(job.plan.strategy, neighbors);
  add_split_changes(job.plan.strategy, neighbors);
  std::vector<EvaluatedNeighbor> evaluated;
  for (const Neighbor& neighbor : neighbors) {
    if (job.checkpoint) job.checkpoint();
    try {
      const Plan plan = complete_plan(neighbor.strategy, job.model, job.cluster, job.cost_model);
      if (!check_plan(plan, job.model, job.cluster).empty()) continue;
      const Evaluation evaluation =
          predict({plan, job.model, job.cluster, job.cost_model}).evaluation;
      evaluated.push_back({neighbor.change, figures_of(plan.strategy, evaluation, "")});
    } catch (const InputError&) {
      continue;  // not a valid plan
    }
  }
  return evaluated;
}

}  // namespace meshwright
