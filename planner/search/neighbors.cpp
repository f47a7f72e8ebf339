#include "planner/search/neighbors.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/schedule/schedule.hpp"
#include "core/trainer/trainer_abilities.hpp"
#include "planner/search/search.hpp"
#include "planner/search/unequal_shares.hpp"

namespace meshwright {
namespace {

/// Changes of one flag that do not change the number of GPUs.
void add_flag_changes(const Strategy& base, std::vector<ChangedStrategy>& neighbors) {
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
void add_split_changes(const Strategy& base, std::vector<ChangedStrategy>& neighbors) {
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

/// One change for every group of choices in which `to` differs from `from`.
std::vector<ChangedStrategy> changes_towards(const Strategy& from, const Strategy& to) {
  std::vector<ChangedStrategy> changes;
  const auto add = [&](std::string_view name, auto assign) {
    Strategy changed = from;
    assign(changed);
    if (changed != from) changes.push_back({std::string(name), std::move(changed)});
  };
  add("parallel sizes", [&](Strategy& s) {
    s.degrees = to.degrees;
    s.degrees.chunks = from.degrees.chunks;
  });
  add("schedule", [&](Strategy& s) {
    s.schedule = to.schedule;
    s.degrees.chunks = to.degrees.chunks;
  });
  add("sequence parallelism", [&](Strategy& s) { s.sequence_parallel = to.sequence_parallel; });
  add("micro-batch size", [&](Strategy& s) { s.micro_batch = to.micro_batch; });
  add("global batch size", [&](Strategy& s) { s.global_batch = to.global_batch; });
  add("sequence length", [&](Strategy& s) { s.sequence_length = to.sequence_length; });
  add("recomputation", [&](Strategy& s) { s.recompute = to.recompute; });
  add("ZeRO", [&](Strategy& s) { s.zero = to.zero; });
  add("precision", [&](Strategy& s) {
    s.dtype = to.dtype;
    s.precision = to.precision;
  });
  add("attention", [&](Strategy& s) { s.attention = to.attention; });
  add("options of data parallelism",
      [&](Strategy& s) { s.data_parallelism = to.data_parallelism; });
  add("options of model parallelism",
      [&](Strategy& s) { s.model_parallelism = to.model_parallelism; });
  return changes;
}

TrainingJob job_of(const TrainingJob& job, const Plan& plan) {
  return {.plan = plan, .model = job.model, .cluster = job.cluster, .cost_model = job.cost_model};
}

std::vector<EvaluatedNeighbor> evaluate_all(const TrainingJob& job,
                                            const std::vector<ChangedStrategy>& neighbors) {
  std::vector<EvaluatedNeighbor> evaluated;
  for (const ChangedStrategy& neighbor : neighbors) {
    if (job.checkpoint) job.checkpoint();
    try {
      const Plan plan = complete_plan(neighbor.strategy, job.model, job.cluster, job.cost_model);
      if (!check_plan(plan, job.model, job.cluster).empty()) continue;
      const Prediction prediction = predict(job_of(job, plan));
      const Evaluation& evaluation = prediction.evaluation;
      const std::size_t fullest = fullest_rank(evaluation);
      evaluated.push_back({neighbor.change, figures_of(plan.strategy, evaluation, ""),
                           prediction.graph.ranks[fullest].coordinate.pipeline,
                           evaluation.peak_memory[fullest]});
    } catch (const InputError&) {
      continue;  // not a valid plan
    }
  }
  return evaluated;
}

bool trainer_can_run(const TrainingJob& job, const Strategy& strategy) {
  return job.trainer == nullptr ||
         can_run(job.trainer->abilities, Plan{.strategy = strategy, .blocks_per_stage = {}});
}

/// The fastest neighbor that is faster than `step_time`, that the trainer can run, and that fits or
/// does not; null if there is none.
const EvaluatedNeighbor* fastest(const TrainingJob& job,
                                 std::span<const EvaluatedNeighbor> neighbors, Ticks step_time,
                                 bool fits) {
  const EvaluatedNeighbor* best = nullptr;
  for (const EvaluatedNeighbor& neighbor : neighbors) {
    const PlanFigures& f = neighbor.figures;
    if (f.step_time < (best != nullptr ? best->figures.step_time : step_time) &&
        (missing_memory(f) == Bytes(0)) == fits && trainer_can_run(job, f.strategy))
      best = &neighbor;
  }
  return best;
}

bool is_strategy_of(const Strategy& strategy, std::span<const EvaluatedNeighbor> neighbors) {
  return std::ranges::any_of(neighbors, [&](const EvaluatedNeighbor& neighbor) {
    return neighbor.figures.strategy == strategy;
  });
}

/// The fastest single change of `blocked` that fits.
std::optional<EvaluatedNeighbor> remedy_for(const TrainingJob& job,
                                            const EvaluatedNeighbor& blocked,
                                            std::span<const EvaluatedNeighbor> neighbors) {
  const Plan plan = complete_plan(blocked.figures.strategy, job.model, job.cluster, job.cost_model);
  TrainingJob changed = job_of(job, plan);
  changed.trainer = job.trainer;
  changed.checkpoint = job.checkpoint;
  std::vector<EvaluatedNeighbor> remedies = evaluate_neighbors(changed);
  std::erase_if(remedies, [&](const EvaluatedNeighbor& remedy) {
    return remedy.figures.strategy == job.plan.strategy ||
           is_strategy_of(remedy.figures.strategy, neighbors);
  });
  const EvaluatedNeighbor* best = fastest_that_fits(changed, remedies, Ticks::max());
  return best != nullptr ? std::optional(*best) : std::nullopt;
}

}  // namespace

std::vector<ChangedStrategy> single_changes(const Strategy& base) {
  std::vector<ChangedStrategy> changes;
  add_flag_changes(base, changes);
  add_split_changes(base, changes);
  return changes;
}

std::vector<EvaluatedNeighbor> evaluate_neighbors(const TrainingJob& job) {
  const Strategy& base = job.plan.strategy;
  std::vector<ChangedStrategy> changes = single_changes(base);
  Strategy shared = base;
  shared.batch_shares = balanced_shares(base, job.model, job.cluster, job.cost_model);
  if (shared != base) changes.push_back({change_to_shares(shared), std::move(shared)});
  return evaluate_all(job, changes);
}

std::vector<EvaluatedNeighbor> evaluate_changes_towards(const TrainingJob& job,
                                                        const Strategy& other) {
  return evaluate_all(job, changes_towards(job.plan.strategy, other));
}

Bytes missing_memory(const PlanFigures& figures) {
  return std::max(Bytes(0), figures.peak_memory - figures.memory_capacity);
}

const EvaluatedNeighbor* fastest_that_fits(const TrainingJob& job,
                                           std::span<const EvaluatedNeighbor> neighbors,
                                           Ticks step_time) {
  return fastest(job, neighbors, step_time, /*fits=*/true);
}

std::optional<BlockedNeighbor> fastest_that_does_not_fit(
    const TrainingJob& job, const Evaluation& evaluation,
    std::span<const EvaluatedNeighbor> neighbors) {
  const EvaluatedNeighbor* best = fastest(job, neighbors, evaluation.step_time, /*fits=*/false);
  if (best == nullptr) return std::nullopt;
  return BlockedNeighbor{.neighbor = *best,
                         .memory = compare_memory(evaluation.peak_memory[fullest_rank(evaluation)],
                                                  best->fullest_memory),
                         .remedy = remedy_for(job, *best, neighbors)};
}

}  // namespace meshwright
