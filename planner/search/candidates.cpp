#include "planner/search/candidates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/base/check.hpp"
#include "planner/search/stage_partition.hpp"
#include "planner/search/trainer_choices.hpp"

namespace meshwright {
namespace {

std::vector<int> divisors(std::int64_t number) {
  std::vector<int> found;
  for (std::int64_t d = 1; d <= number; ++d)
    if (number % d == 0) found.push_back(static_cast<int>(d));
  return found;
}

constexpr std::int64_t kLargestMicroBatch = 1 << 20;  ///< sequences; far beyond any device
constexpr std::int64_t kMostMicrobatches = 1 << 26;   ///< all schedules reject more

/// Enumerates the space, outermost choice first; each level sets one choice of `at_`.
class Enumeration {
 public:
  Enumeration(const ModelGraph& model, const Cluster& cluster, const Goal& goal,
              const FixedChoices& fixed)
      : model_(model), cluster_(cluster), goal_(goal), fixed_(fixed), traits_(traits_of(model)) {
    const auto largest_node = [&] {
      int most = 1;
      for (const NodeGroup& group : cluster.groups)
        most = std::max(most, cluster.nodes.at(group.node).device_count);
      return most;
    };
    devices_per_node_ = largest_node();
    zero_levels_ = zero_levels_to_search(fixed);
    searches_torch_selective_ = fixed.trainer && lacks_block_counts(*fixed.trainer);
  }

  CandidateSpace run() && {
    at_.degrees = degrees_of(fixed_);  // the others are searched below
    ParallelDegrees unsearched = at_.degrees;
    unsearched.tensor = unsearched.pipeline = unsearched.data = 1;
    const std::int64_t ranks = rank_count(unsearched);
    if (ranks < 1 || goal_.gpus % ranks != 0) {
      turn_down(PruneReason::kStructure);
    } else {
      add_tensor_degrees(static_cast<int>(goal_.gpus / ranks));
    }
    return std::move(space_);
  }

 private:
  void turn_down(PruneReason reason) { ++space_.pruned[static_cast<std::size_t>(reason)]; }

  /// `fixed`, or all of `free`.
  static std::vector<int> choices(const std::optional<int>& fixed, std::vector<int> free) {
    if (fixed) return {*fixed};
    return free;
  }

  void add_tensor_degrees(int ranks) {
    std::vector<int> in_node = divisors(ranks);
    std::erase_if(in_node, [&](int degree) { return degree > devices_per_node_; });
    for (const int tensor : choices(fixed_.tensor, in_node)) {
      if (tensor < 1 || ranks % tensor != 0 || traits_.heads.value_or(tensor) % tensor != 0) {
        turn_down(PruneReason::kStructure);
        continue;
      }
      at_.degrees.tensor = tensor;
      add_pipeline_degrees(ranks / tensor);
    }
  }

  void add_pipeline_degrees(int ranks) {
    for (const int pipeline : choices(fixed_.pipeline, divisors(ranks))) {
      const bool divides = pipeline >= 1 && ranks % pipeline == 0;
      const int data = divides ? ranks / pipeline : 1;
      if (!divides || pipeline > traits_.blocks + (pipeline > 1 ? 2 : 1) ||
          goal_.global_batch % data != 0 || (fixed_.data && *fixed_.data != data)) {
        turn_down(PruneReason::kStructure);
        continue;
      }
      at_.degrees.pipeline = pipeline;
      at_.degrees.data = data;
      add_expert_degrees();
    }
  }

  void add_expert_degrees() {
    const std::int64_t ranks = stage_rank_count(at_.degrees);
    const int experts = traits_.experts.value_or(1);
    for (const int expert : choices(fixed_.expert, divisors(experts))) {
      const std::int64_t used = std::int64_t{expert} * at_.degrees.expert_tensor;
      if (used < 1 || ranks % used != 0) {
        turn_down(PruneReason::kStructure);
        continue;
      }
      at_.degrees.expert = expert;
      add_sequence_parallelism();
    }
  }

  void add_sequence_parallelism() {
    for (const bool cut : {false, true}) {
      if (fixed_.sequence_parallel && *fixed_.sequence_parallel != cut) continue;
      if (cut && at_.degrees.tensor == 1 && !fixed_.sequence_parallel) continue;
      at_.sequence_parallel = cut;
      add_micro_batches();
    }
  }

  void add_micro_batches() {
    const std::int64_t batch = goal_.global_batch / at_.degrees.data;
    std::vector<int> powers;
    for (std::int64_t size = 1; size <= kLargestMicroBatch && batch % size == 0; size *= 2)
      powers.push_back(static_cast<int>(size));
    for (const int size : choices(fixed_.micro_batch, powers)) {
      if (size < 1 || batch % size != 0) {
        turn_down(PruneReason::kStructure);
        continue;
      }
      at_.micro_batch = size;
      add_schedules(batch / size);
    }
  }

  void add_schedules(std::int64_t microbatches) {
    if (microbatches > kMostMicrobatches) {
      turn_down(PruneReason::kStructure);
      return;
    }
    for (const ScheduleRule& rule : schedule_rules()) {
      if (fixed_.schedule ? rule.name != *fixed_.schedule : !rule.worth_searching) continue;
      if (at_.degrees.pipeline > 1 && fixed_.trainer &&
          !accepts(fixed_.trainer->abilities.any, Ability::kSchedules, rule.name)) {
        turn_down(PruneReason::kTrainer);
        continue;
      }
      at_.rule = &rule;
      if (at_.degrees.pipeline == 1 && !fixed_.schedule && &rule != rule_without_pipeline()) {
        turn_down(PruneReason::kDominated);  // without a pipeline only its memory differs
        continue;
      }
      const std::vector<int> chunks = chunk_counts(rule, microbatches);
      if (chunks.empty()) turn_down(PruneReason::kSchedule);
      for (const int count : chunks) {
        at_.degrees.chunks = count;
        add_checked(microbatches);
      }
    }
  }

  /// On one device all orders take the same time: the rule with the fewest saved activations.
  const ScheduleRule* rule_without_pipeline() const {
    const ScheduleRequest two = request_of(ParallelDegrees{}, 2);
    const ScheduleRule* leanest = nullptr;
    double least = 0;
    for (const ScheduleRule& rule : schedule_rules()) {
      if (!rule.worth_searching || rule.problem(two)) continue;
      const double peak = rule.peak_activations(two, PipelineRankId(0));
      if (leanest != nullptr && peak >= least) continue;
      leanest = &rule;
      least = peak;
    }
    return leanest;
  }

  /// Chunk counts supported by the rule. A rule for several chunks is never used with one, as in
  /// Megatron-LM, which rejects that.
  std::vector<int> chunk_counts(const ScheduleRule& rule, std::int64_t microbatches) const {
    const int pipeline = at_.degrees.pipeline;
    std::vector<int> free{1};
    const int most = pipeline > 1 ? (traits_.blocks + 2) / pipeline : 1;
    const int per_device = divide_up(traits_.blocks, pipeline);
    for (int count = 2; count <= most; ++count)
      if (count == 2 || per_device % count == 0) free.push_back(count);
    std::vector<int> counts = choices(fixed_.chunks, free);
    std::erase_if(counts, [&](int count) {
      ParallelDegrees degrees = at_.degrees;
      degrees.chunks = count;
      return rule.problem(request_of(degrees, microbatches)).has_value();
    });
    if (!fixed_.chunks && takes_several_chunks(rule)) std::erase(counts, 1);
    return counts;
  }

  static bool takes_several_chunks(const ScheduleRule& rule) {
    ParallelDegrees degrees;
    degrees.pipeline = degrees.chunks = 2;
    return !rule.problem(request_of(degrees, 8));
  }

  void add_checked(std::int64_t microbatches) {
    at_.parts = model_parts(at_.rule->placement(request_of(at_.degrees, microbatches)));
    if (!can_cut(traits_.blocks, at_.parts)) {
      turn_down(PruneReason::kStructure);
      return;
    }
    at_.recompute = fixed_.recompute.value_or(Recompute{});
    at_.zero = fixed_.zero.value_or(0);
    if (is_valid(evenly_cut_plan())) add_memory_savers();
  }

  Plan evenly_cut_plan() const {
    return {strategy_of(at_, goal_, fixed_), even_cut(traits_.blocks, at_.parts)};
  }

  bool is_valid(const Plan& plan) {
    std::vector<Diagnostic> problems = check_plan(plan, model_, cluster_);
    if (problems.empty()) return true;
    if (!space_.first_problem) space_.first_problem = std::move(problems.front());
    turn_down(PruneReason::kStructure);
    return false;
  }

  void add_memory_savers() {
    const Recompute selective{.kind = RecomputeKind::kSelective, .blocks = 0};
    std::vector<Recompute> recomputes{{}};
    if (fixed_.recompute) {
      // "block:0" recomputes no block; in a candidate, 0 means that the number is not chosen yet.
      const bool no_block = *fixed_.recompute == Recompute{.kind = RecomputeKind::kBlocks};
      recomputes = {no_block ? Recompute{} : *fixed_.recompute};
    } else {
      if (fixed_.attention == AttentionAlgorithm::kStandard) recomputes.push_back(selective);
      recomputes.push_back({.kind = RecomputeKind::kBlocks, .blocks = 0});
      recomputes.push_back({.kind = RecomputeKind::kFull, .blocks = 0});
      if (searches_torch_selective_) recomputes.push_back({.kind = RecomputeKind::kTorchSelective});
    }
    for (const Recompute& recompute : recomputes)
      for (const int zero : choices(fixed_.zero, zero_levels_)) {
        if (zero >= 1 && replica_count(at_.degrees) == 1 && !fixed_.zero) {
          turn_down(PruneReason::kDominated);  // no replicas to shard the optimizer over
          continue;
        }
        at_.recompute = recompute;
        at_.zero = zero;
        add_if_runnable();
      }
  }

  void add_if_runnable() {
    if (fixed_.trainer) {
      const Plan plan = evenly_cut_plan();
      const bool is_unchecked =
          (at_.zero > 1 && !fixed_.zero) ||
          (at_.recompute.kind == RecomputeKind::kTorchSelective && !fixed_.recompute);
      if (is_unchecked && !is_valid(plan)) return;
      if (!can_run_with_its_cut(plan)) return turn_down(PruneReason::kTrainer);
    }
    space_.candidates.push_back(at_);
  }

  /// The planner cuts stages freely if the trainer supports it; `plan` is cut evenly.
  bool can_run_with_its_cut(const Plan& plan) {
    if (can_run(fixed_.trainer->abilities, plan)) return true;
    if (!space_.first_trainer_problem)
      space_.first_trainer_problem = trainer_problems(plan, *fixed_.trainer).front();
    return false;
  }

  const ModelGraph& model_;
  const Cluster& cluster_;
  const Goal& goal_;
  const FixedChoices& fixed_;
  ModelTraits traits_;
  int devices_per_node_ = 1;
  std::vector<int> zero_levels_;  ///< searched if none is fixed
  bool searches_torch_selective_ = false;
  Candidate at_;
  CandidateSpace space_;
};

void check_goal(const Cluster& cluster, const Goal& goal, const FixedChoices& fixed) {
  std::vector<Diagnostic> problems;
  const auto positive = [&](const char* flag, std::int64_t value) {
    if (value >= 1) return;
    problems.push_back(
        {.where = flag, .what = fmt::format("must be at least 1, got {}", value), .hint = ""});
  };
  positive("--gpus", goal.gpus);
  positive("--global-batch", goal.global_batch);
  positive("--seq", goal.sequence_length);
  if (goal.gpus > device_count(cluster))
    problems.push_back({.where = "--gpus",
                        .what = fmt::format("{} devices requested, but cluster '{}' has {}",
                                            goal.gpus, cluster.name, device_count(cluster)),
                        .hint = fmt::format("use at most {}", device_count(cluster))});
  const ScheduleRule* rule = fixed.schedule ? find_schedule_rule(*fixed.schedule) : nullptr;
  if (fixed.schedule && rule == nullptr)
    problems.push_back({.where = "--schedule",
                        .what = fmt::format("unknown schedule '{}'", *fixed.schedule),
                        .hint = suggest(*fixed.schedule, schedule_names())});
  if (rule != nullptr && rule->updates != UpdateTime::kAfterFlush)
    problems.push_back(
        {.where = "--schedule",
         .what = fmt::format("'{}' trains with stale weights and is not searched", *fixed.schedule),
         .hint = "use 'simulate' or 'run' with explicit parallel sizes"});
  throw_if_any(problems);
}

}  // namespace

ScheduleRequest request_of(const ParallelDegrees& degrees, std::int64_t microbatches) {
  ScheduleRequest request;
  request.devices = degrees.pipeline;
  request.chunks = degrees.chunks;
  request.microbatches = static_cast<int>(microbatches);
  return request;
}

ScheduleRequest request_of(const Strategy& strategy) {
  return request_of(strategy.degrees, microbatch_count(strategy));
}

int model_parts(const Placement& placement) {
  return 1 + *std::max_element(placement.part_of_stage.begin(), placement.part_of_stage.end());
}

Strategy strategy_of(const Candidate& candidate, const Goal& goal, const FixedChoices& fixed) {
  MW_CHECK(candidate.rule != nullptr);
  return {.degrees = candidate.degrees,
          .sequence_parallel = candidate.sequence_parallel,
          .micro_batch = candidate.micro_batch,
          .global_batch = goal.global_batch,
          .sequence_length = goal.sequence_length,
          .schedule = std::string(candidate.rule->name),
          .recompute = candidate.recompute,
          .zero = candidate.zero,
          .dtype = fixed.dtype.value_or(Dtype::kBf16),
          .attention = fixed.attention.value_or(AttentionAlgorithm::kFlash),
          .data_parallelism = fixed.data_parallelism,
          .model_parallelism = fixed.model_parallelism,
          .precision = fixed.precision};
}

bool is_simpler(const Candidate& a, const Candidate& b) {
  const auto key = [](const Candidate& c) {
    return std::tuple(c.degrees.tensor, c.degrees.pipeline, c.degrees.expert,
                      c.degrees.expert_tensor, c.degrees.chunks, c.sequence_parallel,
                      c.recompute.kind, c.recompute.blocks, c.zero, -c.micro_batch,
                      c.rule - schedule_rules().data(), c.degrees);
  };
  return key(a) < key(b);
}

Dtype default_dtype(const Cluster& cluster) {
  const DeviceModel& device = device_of(cluster, DeviceId(0));
  for (const Dtype dtype : {Dtype::kBf16, Dtype::kFp16})
    if (device.peak[static_cast<std::size_t>(dtype)]) return dtype;
  return Dtype::kFp32;
}

CandidateSpace enumerate_candidates(const ModelGraph& model, const Cluster& cluster,
                                    const Goal& goal, const FixedChoices& fixed) {
  check_goal(cluster, goal, fixed);
  return Enumeration(model, cluster, goal, fixed).run();
}

}  // namespace meshwright
