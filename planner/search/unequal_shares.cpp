#include "planner/search/unequal_shares.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <queue>
#include <utility>

#include "core/base/error.hpp"
#include "core/plan/job_groups.hpp"
#include "core/trainer/trainer_abilities.hpp"
#include "planner/parallel/parallel_for.hpp"
#include "planner/search/explain.hpp"
#include "planner/search/layer_times.hpp"
#include "planner/search/space.hpp"
#include "planner/search/tried_plan.hpp"
#include "simulator/predict/predict.hpp"

namespace meshwright {
namespace {

/// Layouts that are tried with simple choices, and those of them whose choices are improved.
constexpr std::size_t kMostLayouts = 64, kLayoutsToImprove = 4;
constexpr int kMostRounds = 3;  ///< of improvements
constexpr int kMostMoves = 8;   ///< of micro-batches between replicas
/// Micro-batch sizes of the space are powers of two up to this one.
constexpr std::int64_t kLargestMicrobatch = 8;

/// Ranks of a replica are neighbors, so that it is on nodes of one type where these hold whole
/// replicas (Megatron-LM --use-tp-pp-dp-mapping).
RankOrder replicas_outermost() { return *rank_order_from_text("tp-cp-ep-pp-dp"); }

/// The choices that unequal shares leave; nullopt: fixed choices contradict them.
std::optional<FixedChoices> choices_with_shares(FixedChoices fixed) {
  if (fixed.zero.value_or(1) > 1 || fixed.expert.value_or(1) > 1 ||
      fixed.overlap_gather.value_or(false) || fixed.shard_ranks.value_or(0) > 0 ||
      fixed.data_parallelism.kind != DataParallelKind::kCollective)
    return std::nullopt;
  if (fixed.trainer && !accepts(fixed.trainer->abilities.any, Ability::kOptions, "batch-shares"))
    return std::nullopt;
  fixed.zero = fixed.zero.value_or(1);
  fixed.expert = 1;
  fixed.overlap_gather = false;
  fixed.shard_ranks = 0;
  fixed.rank_order = fixed.rank_order.value_or(replicas_outermost());
  return fixed;
}

bool can_have_shares(const PipelineChoice& pipeline) {
  return pipeline.rule != nullptr && pipeline.placement && pipeline.placement->routes.size() == 1 &&
         !pipeline.pairs_passes && pipeline.relief == 0;
}

/// By data-parallel rank, if the blocks were divided evenly over the stages.
std::vector<ReplicaTime> replica_times(const Strategy& s, const ModelGraph& model,
                                       const Cluster& cluster, const CostModel& cost_model) {
  const std::vector<std::int32_t> kinds = kinds_of_data_ranks(s, cluster);
  const auto positions = static_cast<std::size_t>(s.degrees.pipeline);
  std::map<std::int32_t, Ticks> time_on;
  std::vector<ReplicaTime> times;
  for (std::size_t place = 0; place < kinds.size(); ++place) {
    const auto [known, is_new] = time_on.try_emplace(kinds[place]);
    if (is_new) {
      const LayerCosts costs = layer_costs(s, model, cluster, cost_model.on_nodes(kinds[place]));
      const Ticks all = total_time(costs.passes, s.recompute.kind == RecomputeKind::kFull);
      known->second = Ticks(all.value / s.degrees.pipeline);
    }
    if (place % positions == 0) times.emplace_back();
    times.back().microbatch = std::max(times.back().microbatch, known->second);
  }
  for (ReplicaTime& time : times)
    time.rest = Ticks(time.microbatch.value * (s.degrees.pipeline - 1) / s.degrees.chunks);
  return times;
}

std::optional<std::int64_t> all_microbatches(const Strategy& s) {
  if (s.global_batch % s.micro_batch != 0) return std::nullopt;
  return s.global_batch / s.micro_batch;
}

/// Interleaved schedules run micro-batches in groups.
int unit_of(const Strategy& s) { return s.degrees.chunks > 1 ? s.degrees.pipeline : 1; }

class ShareSearch {
 public:
  ShareSearch(const SearchJob& job, const FixedChoices& fixed, Ticks limit,
              const std::function<bool()>& canceled)
      : job_(job), canceled_(canceled), best_time_(limit) {
    job_.fixed = fixed;
    // Every data-parallel size and micro-batch divides this batch.
    goal_ = job.goal;
    goal_.global_batch = kLargestMicrobatch * job.goal.gpus;
  }

  /// A plan that is faster than the limit.
  std::optional<Plan> run() {
    space_ = make_space(job_.model, job_.cluster, goal_, job_.fixed);
    std::vector<Start> starts = promising_layouts();
    starts.resize(std::min(starts.size(), kMostLayouts));
    parallel_for(starts.size(), job_.threads, [&](std::size_t i) { try_simply(starts[i]); });
    std::erase_if(starts, [](const Start& start) { return !start.tried; });
    std::ranges::stable_sort(starts, {}, [](const Start& s) { return s.tried->time; });
    starts.resize(std::min(starts.size(), kLayoutsToImprove));
    for (Start& start : starts) {
      improve(start);
      if (start.tried->time >= best_time_) continue;
      best_time_ = start.tried->time;
      best_ = std::move(start.tried->plan);
    }
    if (best_) move_microbatches();
    return std::move(best_);
  }

 private:
  struct Tried {
    Plan plan;
    Ticks time;
  };
  struct Start {
    const SearchSpace::Branch* branch = nullptr;
    Ticks bound;
    Candidate candidate = {};
    std::optional<Tried> tried = {};
  };

  bool is_canceled() const { return canceled_ && canceled_(); }

  Strategy strategy(const Candidate& candidate) const {
    Strategy s = strategy_of(candidate, goal_, job_.fixed);
    s.global_batch = job_.goal.global_batch;
    return s;
  }

  std::vector<ReplicaTime> times_of(const Strategy& s) const {
    return replica_times(s, job_.model, job_.cluster, job_.cost_model);
  }

  /// Of a step in which all replicas are busy all the time.
  std::optional<Ticks> bound_of(const Strategy& s) const {
    const std::optional<std::int64_t> total = all_microbatches(s);
    if (!total || *total < s.degrees.data) return std::nullopt;
    double rate = 0;
    for (const ReplicaTime& time : times_of(s))
      rate += 1 / static_cast<double>(std::max<std::int64_t>(1, time.microbatch.value));
    return Ticks(static_cast<std::int64_t>(static_cast<double>(*total) / rate));
  }

  /// Those whose bound is below the limit, lowest bounds first.
  std::vector<Start> promising_layouts() const {
    std::vector<Start> starts(space_.branches.size());
    parallel_for(starts.size(), job_.threads, [&](std::size_t i) {
      const SearchSpace::Branch& branch = space_.branches[i];
      if (is_canceled() || branch.layout.degrees.data < 2) return;
      Candidate plain{.layout = branch.layout, .pipeline = {}, .recompute = {}, .replication = {}};
      const std::optional<Ticks> bound = bound_of(strategy(plain));
      if (bound && *bound < best_time_) starts[i] = {.branch = &branch, .bound = *bound};
    });
    std::erase_if(starts, [](const Start& start) { return start.branch == nullptr; });
    std::ranges::stable_sort(starts, {}, &Start::bound);
    return starts;
  }

  std::optional<Tried> try_candidate(const Candidate& candidate, Ticks limit) const {
    Strategy s = strategy(candidate);
    if (is_canceled()) return std::nullopt;
    s.batch_shares = balanced_shares(s, job_.model, job_.cluster, job_.cost_model);
    if (s.batch_shares.empty()) return std::nullopt;
    std::optional<Plan> plan = completed_plan(s, job_);
    if (!plan) return std::nullopt;
    const std::optional<Ticks> time = step_time_of(*plan, job_, limit);
    if (!time) return std::nullopt;
    return Tried{std::move(*plan), *time};
  }

  /// With the simplest schedule, and without recomputation if that fits.
  void try_simply(Start& start) const {
    const auto pipelines = space_.pipelines(*start.branch);
    const auto pipeline = std::ranges::find_if(pipelines, can_have_shares);
    if (pipeline == pipelines.end()) return;
    start.candidate = {.layout = start.branch->layout,
                       .pipeline = *pipeline,
                       .recompute = {},
                       .replication = space_.replications(*start.branch).back()};
    for (const Recompute& recompute : space_.recomputes) {
      if (recompute.kind != RecomputeKind::kNone && recompute.kind != RecomputeKind::kFull)
        continue;
      start.candidate.recompute = recompute;
      start.tried = try_candidate(start.candidate, Ticks::max());
      if (start.tried) return;
    }
  }

  /// Changes one choice at a time to the best one.
  void improve(Start& start) {
    for (int round = 0; round < kMostRounds; ++round) {
      const Ticks before = start.tried->time;
      choose(start, space_.pipelines(*start.branch),
             [](Candidate& c, const PipelineChoice& choice) {
               if (!can_have_shares(choice)) return false;
               c.pipeline = choice;
               return true;
             });
      choose(start, std::span<const Recompute>(space_.recomputes),
             [](Candidate& c, const Recompute& choice) {
               if (choice.kind == RecomputeKind::kBlocks) return false;
               c.recompute = choice;
               return true;
             });
      choose(start, space_.replications(*start.branch),
             [](Candidate& c, const Replication& choice) {
               c.replication = choice;
               return true;
             });
      if (start.tried->time == before) return;
    }
  }
  template <class Choice, class Set>
  void choose(Start& start, std::span<const Choice> choices, const Set& set) {
    std::vector<std::optional<Tried>> tried(choices.size());
    parallel_for(choices.size(), job_.threads, [&](std::size_t i) {
      Candidate candidate = start.candidate;
      if (set(candidate, choices[i])) tried[i] = try_candidate(candidate, start.tried->time);
    });
    for (std::size_t i = 0; i < tried.size(); ++i)
      if (tried[i] && tried[i]->time < start.tried->time) {
        start.tried = std::move(tried[i]);
        set(start.candidate, choices[i]);
      }
  }

  /// The estimates of replica_times() leave out messages and the ends of the pipeline: shifts
  /// micro-batches from the replicas of one speed to the others while the step gets shorter.
  void move_microbatches() {
    const Strategy& s = best_->strategy;
    std::vector<ReplicaTime> times = times_of(s);
    std::vector<Ticks> speeds;
    for (const ReplicaTime& time : times)
      if (std::ranges::find(speeds, time.microbatch) == speeds.end())
        speeds.push_back(time.microbatch);
    const std::int64_t total = *all_microbatches(s);
    for (int move = 0; move < kMostMoves && !is_canceled(); ++move) {
      std::optional<std::vector<ReplicaTime>> better;
      for (const Ticks speed : speeds)
        for (const int sign : {-1, 1}) {
          std::vector<ReplicaTime> shifted = times;
          for (ReplicaTime& time : shifted)
            if (time.microbatch == speed)
              time.rest += time.microbatch * (std::int64_t{sign} * unit_of(s));
          const std::vector<int> shares = balanced_microbatches(shifted, total, unit_of(s));
          if (shares.empty()) continue;
          Plan plan = *best_;
          plan.strategy.batch_shares = shares_of(shares);
          const std::optional<Ticks> time = step_time_of(plan, job_, best_time_);
          if (!time || *time >= best_time_) continue;
          best_time_ = *time;
          best_ = std::move(plan);
          better = std::move(shifted);
        }
      if (!better) return;
      times = std::move(*better);
    }
  }

  SearchJob job_;
  Goal goal_;
  const std::function<bool()>& canceled_;
  SearchSpace space_;
  Ticks best_time_;
  std::optional<Plan> best_;
};

}  // namespace

std::vector<int> balanced_microbatches(std::span<const ReplicaTime> replicas, std::int64_t total,
                                       int unit) {
  const std::int64_t units = total / unit;
  if (total % unit != 0 || units < static_cast<std::int64_t>(replicas.size())) return {};
  const auto time_of = [&](std::size_t r, std::int64_t count) {
    return replicas[r].rest + replicas[r].microbatch * (count * unit);
  };
  /// As many as end by then, at least one.
  const auto within = [&](std::size_t r, Ticks end) {
    const Ticks left = end - replicas[r].rest;
    const std::int64_t one = std::max<std::int64_t>(1, replicas[r].microbatch.value * unit);
    return std::clamp<std::int64_t>(left.value / one, 1, units);
  };
  const auto sum_within = [&](Ticks end) {
    std::int64_t sum = 0;
    for (std::size_t r = 0; r < replicas.size(); ++r) sum += within(r, end);
    return sum;
  };
  Ticks none, all;
  for (std::size_t r = 0; r < replicas.size(); ++r) all = std::max(all, time_of(r, units));
  while (none + Ticks(1) < all) {
    const Ticks middle = none + Ticks((all - none).value / 2);
    (sum_within(middle) >= units ? all : none) = middle;
  }
  std::vector<std::int64_t> counts;
  for (std::size_t r = 0; r < replicas.size(); ++r) counts.push_back(within(r, all));
  // At most one for every replica that ends exactly then.
  std::priority_queue<std::pair<Ticks, std::size_t>> last;
  for (std::size_t r = 0; r < replicas.size(); ++r)
    if (counts[r] > 1) last.emplace(time_of(r, counts[r]), r);
  for (std::int64_t excess = sum_within(all) - units; excess > 0; --excess) {
    const std::size_t r = last.top().second;
    last.pop();
    if (--counts[r] > 1) last.emplace(time_of(r, counts[r]), r);
  }
  std::vector<int> microbatches;
  microbatches.reserve(counts.size());
  for (const std::int64_t count : counts) microbatches.push_back(static_cast<int>(count * unit));
  return microbatches;
}

BatchShares balanced_shares(const Strategy& strategy, const ModelGraph& model,
                            const Cluster& cluster, const CostModel& cost_model) {
  const std::optional<std::int64_t> total = all_microbatches(strategy);
  if (!total || is_homogeneous(cluster)) return {};
  const BatchShares shares = shares_of(balanced_microbatches(
      replica_times(strategy, model, cluster, cost_model), *total, unit_of(strategy)));
  return shares.size() > 1 ? shares : BatchShares();
}

std::string change_to_shares(const Strategy& strategy) {
  return fmt::format("--batch-shares {}", to_text(strategy.batch_shares));
}

void try_unequal_shares(SearchResult& result, const SearchJob& job, const SearchOptions& options) {
  const std::optional<FixedChoices> fixed = choices_with_shares(job.fixed);
  if (!fixed) return;
  Ticks limit = options.longest_step.value_or(Ticks::max());
  if (!result.plans.empty()) limit = std::min(limit, result.plans.front().evaluation.step_time);
  std::optional<Plan> plan;
  try {
    plan = ShareSearch(job, *fixed, limit, options.canceled).run();
  } catch (const InputError&) {
    return;  // fixed choices leave no such plan
  }
  if (!plan) return;
  RankedPlan row{.plan = std::move(*plan), .evaluation = {}, .why = {}};
  row.evaluation = predict({row.plan, job.model, job.cluster, job.cost_model}).evaluation;
  if (!result.plans.empty() && !is_worthwhile(result.plans.front().evaluation.step_time,
                                              row.evaluation.step_time, kWorthwhileGainOfShares))
    return;
  row.why = why(row.plan, row.evaluation, job);
  result.certificate.refined_by.push_back(change_to_shares(row.plan.strategy));
  result.infeasible.reset();
  result.plans.insert(result.plans.begin(), std::move(row));
  result.plans.resize(
      std::min(result.plans.size(), static_cast<std::size_t>(std::max(1, options.top))));
}

}  // namespace meshwright
