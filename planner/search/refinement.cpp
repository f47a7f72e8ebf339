#include "planner/search/refinement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.hpp"
#include "core/plan/job_groups.hpp"
#include "core/trainer/trainer_abilities.hpp"
#include "planner/parallel/parallel_for.hpp"
#include "planner/search/explain.hpp"
#include "planner/search/neighbors.hpp"
#include "planner/search/plan_rank.hpp"
#include "planner/search/space.hpp"
#include "planner/search/synthesized_plan.hpp"
#include "planner/search/trainer_choices.hpp"
#include "planner/search/tried_plan.hpp"
#include "simulator/predict/predict.hpp"

namespace meshwright {
namespace {

/// Changes that are kept at most: each costs the simulation of all changes of the plan before.
constexpr int kMostChanges = 6;
constexpr int kMostChangesOutOfTime = 2;

constexpr int kLongestPrefetch = 3;

/// Passes of all plans in which a block is moved from any stage to any other: 0.1 s.
constexpr std::int64_t kMostPassesOfMoves = 300'000;

/// Stages x micro-batches up to which an order is synthesized, which takes up to half a second.
constexpr std::int64_t kMostToSynthesize = 1 << 13;
/// Those above which it has to gain more: few training programs run lists of actions, and long ones
/// are hard to read.
constexpr std::int64_t kLongOrder = 1 << 8;
constexpr double kWorthwhileGainOfLongOrder = 2e-2;

struct ChangedPlan {
  std::string change;
  Plan plan;
};

class Changes {
 public:
  /// `searched`: changes that lead to plans of this space are left out; null: all are tried.
  Changes(const Plan& base, const SearchJob& job, const SearchSpace* searched)
      : base_(base), job_(job), searched_(searched) {}

  std::vector<ChangedPlan> run() {
    add_shard_groups();
    add_prefetch_distances();
    add_rank_orders();
    add_stage_cuts();
    for (const ChangedStrategy& single : single_changes(base_.strategy))
      if (single.strategy.schedule != kSynthesizedSchedule && is_allowed(single.strategy) &&
          !was_searched(single.strategy))
        if (std::optional<Plan> plan = completed_plan(single.strategy, job_))
          changes_.push_back({single.change, std::move(*plan)});
    return std::move(changes_);
  }

 private:
  bool is_allowed(const Strategy& strategy) const {
    return keeps_fixed_choices(strategy, job_.fixed);
  }

  bool was_searched(const Strategy& strategy) const {
    return searched_ != nullptr && choice_outside(strategy, *searched_, job_.fixed).empty();
  }

  template <class Edit>
  void add(std::string change, const Edit& edit) {
    Plan changed = base_;
    edit(changed.strategy);
    if (changed != base_ && is_allowed(changed.strategy))
      changes_.push_back({std::move(change), std::move(changed)});
  }

  /// All replicas, and groups of every power of two that divides them.
  void add_shard_groups() {
    const std::int64_t replicas = replica_count(base_.strategy.degrees);
    if (base_.strategy.zero == 0) return;
    const auto add_size = [&](int size) {
      add(fmt::format("--shard-ranks {}", size),
          [=](Strategy& s) { s.data_parallelism.shard_ranks = size; });
    };
    add_size(0);
    for (int size = 2; size < replicas; size *= 2)
      if (replicas % size == 0) add_size(size);
  }

  void add_prefetch_distances() {
    if (base_.strategy.zero < 3) return;
    for (int distance = 0; distance <= kLongestPrefetch; ++distance)
      add(fmt::format("--fsdp-prefetch {}", distance),
          [=](Strategy& s) { s.data_parallelism.prefetch = distance; });
  }

  /// Tensor parallelism stays innermost.
  void add_rank_orders() {
    for (const std::string_view text :
         {"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp", "tp-pp-cp-ep-dp", "tp-dp-cp-ep-pp", "tp-ep-dp-cp-pp"})
      if (const std::optional<RankOrder> order = rank_order_from_text(text))
        add(fmt::format("--rank-order {}", text),
            [&](Strategy& s) { s.model_parallelism.order = *order; });
  }

  /// All stages of short pipelines; of others the first, the last, the fullest and the emptiest.
  std::vector<std::size_t> stages_to_change() const {
    const std::vector<int>& blocks = base_.blocks_per_stage;
    const auto count = static_cast<std::int64_t>(blocks.size());
    std::vector<std::size_t> stages(blocks.size());
    std::iota(stages.begin(), stages.end(), std::size_t{0});
    if (count <= 2 || count * count * count * microbatch_count(base_.strategy) < kMostPassesOfMoves)
      return stages;
    const auto [least, most] = std::minmax_element(blocks.begin() + 1, blocks.end() - 1);
    const auto at = [&](auto stage) { return static_cast<std::size_t>(stage - blocks.begin()); };
    return {0, at(least), at(most), blocks.size() - 1};
  }

  /// Moves one block from one stage to another.
  void add_stage_cuts() {
    const std::vector<int>& blocks = base_.blocks_per_stage;
    if (blocks.size() < 2 || (job_.fixed.trainer && !cuts_freely(*job_.fixed.trainer))) return;
    const std::vector<std::size_t> stages = stages_to_change();
    for (const std::size_t from : stages)
      for (const std::size_t to : stages) {
        if (from == to || blocks[from] == 0) continue;
        Plan changed = base_;
        --changed.blocks_per_stage[from];
        ++changed.blocks_per_stage[to];
        changes_.push_back(
            {fmt::format("one block from stage {} to {}", from, to), std::move(changed)});
      }
  }

  const Plan& base_;
  const SearchJob& job_;
  const SearchSpace* searched_;
  std::vector<ChangedPlan> changes_;
};

/// The fastest of the changes, if it is worthwhile.
std::optional<ChangedPlan> fastest_change(std::vector<ChangedPlan> changes, const SearchJob& job,
                                          Ticks step_time) {
  std::vector<std::optional<Ticks>> times(changes.size());
  parallel_for(changes.size(), job.threads,
               [&](std::size_t i) { times[i] = step_time_of(changes[i].plan, job, step_time); });
  std::optional<std::size_t> fastest;
  for (std::size_t i = 0; i < changes.size(); ++i)
    if (times[i] && (!fastest || *times[i] < *times[*fastest])) fastest = i;
  if (!fastest || !is_worthwhile(step_time, *times[*fastest], kWorthwhileGain)) return std::nullopt;
  return std::move(changes[*fastest]);
}

/// The synthesized order of the plan's passes, if it is worthwhile.
std::optional<RankedPlan> with_synthesized_order(const RankedPlan& best, const SearchJob& job) {
  const Strategy& strategy = best.plan.strategy;
  const std::int64_t size = stage_count(strategy.degrees) * microbatch_count(strategy);
  if (job.fixed.schedule || strategy.schedule == kSynthesizedSchedule || size > kMostToSynthesize)
    return std::nullopt;
  const double gain = size > kLongOrder ? kWorthwhileGainOfLongOrder : kWorthwhileGain;
  const Ticks before = best.evaluation.step_time;
  Plan unordered = best.plan;
  unordered.orders.clear();
  unordered.strategy.schedule = kSynthesizedSchedule;
  if (!check_plan(unordered, job.model, job.cluster).empty() ||
      !is_worthwhile(before, step_bound_of(unordered, job), gain))
    return std::nullopt;
  auto synthesized = synthesize_orders(best, job.model, job.cluster, job.cost_model);
  if (!synthesized || !is_worthwhile(before, synthesized->evaluation.step_time, gain))
    return std::nullopt;
  if (job.fixed.trainer && !can_run(job.fixed.trainer->abilities, synthesized->plan))
    return std::nullopt;
  return synthesized;
}

}  // namespace

void refine_best_plan(SearchResult& result, const SearchJob& job, const SearchOptions& options) {
  if (result.plans.empty()) return;
  RankedPlan& best = result.plans.front();
  std::vector<std::string>& refined_by = result.certificate.refined_by;
  const bool is_proved = result.certificate.gap == 0;
  std::optional<SearchSpace> searched;
  if (is_proved) searched = make_space(job.model, job.cluster, job.goal, job.fixed);
  const auto canceled = [&] { return options.canceled && options.canceled(); };
  const int most = is_proved ? kMostChanges : kMostChangesOutOfTime;
  for (int i = 0; i < most && !canceled(); ++i) {
    const auto change =
        fastest_change(Changes(best.plan, job, searched ? &*searched : nullptr).run(), job,
                       best.evaluation.step_time);
    if (!change) break;
    best.plan = change->plan;
    best.evaluation = predict({best.plan, job.model, job.cluster, job.cost_model}).evaluation;
    MW_CHECK(fits_in_memory(best.evaluation));
    best.why = why(best.plan, best.evaluation, job);
    refined_by.push_back(change->change);
  }
  if (canceled()) return;
  if (std::optional<RankedPlan> synthesized = with_synthesized_order(best, job)) {
    best = std::move(*synthesized);
    refined_by.push_back(fmt::format("--schedule {}", kSynthesizedSchedule));
  }
}

}  // namespace meshwright
