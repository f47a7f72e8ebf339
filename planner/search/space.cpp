#include "planner/search/space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "core/base/check.hpp"
#include "planner/search/stage_partition.hpp"
#include "planner/search/trainer_choices.hpp"

namespace meshwright {
namespace {

std::vector<int> divisors(std::int64_t number) {
  std::vector<int> found;
  for (std::int64_t d = 1; d * d <= number; ++d) {
    if (number % d != 0) continue;
    found.push_back(static_cast<int>(d));
    if (d != number / d) found.push_back(static_cast<int>(number / d));
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// Larger ones are powers of two: their shapes no longer differ much in efficiency.
constexpr int kLargestUnevenMicroBatch = 8;
constexpr int kLargestMicroBatch = 1 << 20;          ///< sequences; far beyond any device
constexpr std::int64_t kMostMicrobatches = 1 << 26;  ///< all schedules reject more

/// `fixed`, or all of `free`.
template <class Value>
std::vector<Value> choices(const std::optional<Value>& fixed, std::vector<Value> free) {
  if (fixed) return {*fixed};
  return free;
}

struct ScheduleTraits {
  bool splits_backward = true, pairs_passes = true;  ///< unless known: weaker bounds
};
/// Judged by the smallest valid schedule.
ScheduleTraits traits_of(const ScheduleRule& rule) {
  ScheduleRequest request;
  request.devices = 2;
  for (request.chunks = 1; request.chunks <= 2; ++request.chunks)
    for (request.microbatches = 1; request.microbatches <= 16; ++request.microbatches) {
      if (rule.problem(request)) continue;
      ScheduleTraits traits{.splits_backward = false, .pairs_passes = false};
      for (const std::vector<Action>& order : rule.generate(request).orders)
        for (const Action& action : order) {
          traits.splits_backward |=
              action.pass == Pass::kBackwardInput || action.pass == Pass::kBackwardWeight;
          traits.pairs_passes |= action.overlaps_next;
        }
      return traits;
    }
  return {};
}

int largest_node(const Cluster& cluster) {
  int most = 1;
  for (const NodeGroup& group : cluster.groups)
    most = std::max(most, cluster.nodes.at(group.node).device_count);
  return most;
}

/// Enumerates the layouts, outermost choice first; each level sets one choice of `at_`.
class Enumeration {
 public:
  Enumeration(const ModelGraph& model, const Cluster& cluster, const Goal& goal,
              const FixedChoices& fixed)
      : model_(model),
        cluster_(cluster),
        goal_(goal),
        fixed_(fixed),
        traits_(traits_of(model)),
        devices_per_node_(largest_node(cluster)),
        zero_levels_(zero_levels_to_search(fixed)),
        bucket_rules_(bucket_rules_to_search(fixed)) {}

  SearchSpace run() && {
    list_recomputes();
    at_.degrees = degrees_of(fixed_);  // the others are searched below
    add_tensor_sizes();
    return std::move(space_);
  }

 private:
  void turn_down(PruneReason reason) { ++space_.pruned[static_cast<std::size_t>(reason)]; }

  // ---- layouts ----

  void add_tensor_sizes() {
    std::vector<int> in_node = divisors(goal_.gpus);
    std::erase_if(in_node, [&](int size) { return size > devices_per_node_; });
    for (const int tensor : choices(fixed_.tensor, in_node)) {
      if (tensor < 1 || goal_.gpus % tensor != 0 || traits_.heads.value_or(tensor) % tensor != 0) {
        turn_down(PruneReason::kStructure);
        continue;
      }
      at_.degrees.tensor = tensor;
      add_context_sizes(goal_.gpus / tensor);
    }
  }

  void add_context_sizes(int ranks) {
    for (const int context : choices(fixed_.context, divisors(ranks))) {
      if (context < 1 || ranks % context != 0 || goal_.sequence_length % context != 0) {
        turn_down(PruneReason::kStructure);
        continue;
      }
      at_.degrees.context = context;
      add_pipeline_sizes(ranks / context);
    }
  }

  void add_pipeline_sizes(int ranks) {
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
      add_expert_sizes();
    }
  }

  void add_expert_sizes() {
    const std::int64_t ranks = stage_rank_count(at_.degrees);
    const int experts = traits_.experts.value_or(1);
    const std::vector<int> shards = traits_.experts ? divisors(at_.degrees.tensor) : std::vector{1};
    for (const int expert_tensor : choices(fixed_.expert_tensor, shards))
      for (const int expert : choices(fixed_.expert, divisors(experts))) {
        const std::int64_t used = std::int64_t{expert} * expert_tensor;
        if (used < 1 || ranks % used != 0) {
          turn_down(PruneReason::kStructure);
          continue;
        }
        at_.degrees.expert = expert;
        at_.degrees.expert_tensor = expert_tensor;
        add_sequence_parallelism();
      }
  }

  void add_sequence_parallelism() {
    for (const bool cut : {false, true}) {
      if (fixed_.sequence_parallel && *fixed_.sequence_parallel != cut) continue;
      if (cut && at_.degrees.tensor == 1 && !fixed_.sequence_parallel) continue;
      at_.sequence_parallel = cut;
      for (const bool overlap : {false, true}) {
        if (fixed_.tensor_overlap && *fixed_.tensor_overlap != overlap) continue;
        if (overlap && !cut && !fixed_.tensor_overlap) continue;
        at_.tensor_overlap = overlap;
        add_context_algorithms();
      }
    }
  }

  void add_context_algorithms() {
    std::vector<ContextAlgorithm> algorithms{ContextAlgorithm::kAllGather};
    if (at_.degrees.context > 1)
      for (const auto more : {ContextAlgorithm::kRing, ContextAlgorithm::kAllToAll})
        algorithms.push_back(more);
    for (const ContextAlgorithm algorithm : choices(fixed_.context_algorithm, algorithms)) {
      at_.context = algorithm;
      add_micro_batches();
    }
  }

  void add_micro_batches() {
    const std::int64_t batch = goal_.global_batch / at_.degrees.data;
    at_.micro_batch = 1;
    if (!is_possible_layout()) return;
    std::vector<int> sizes;
    for (const int size : divisors(batch))
      if (size <= kLargestUnevenMicroBatch ||
          (size <= kLargestMicroBatch && std::has_single_bit(static_cast<unsigned>(size))))
        sizes.push_back(size);
    for (const int size : choices(fixed_.micro_batch, sizes)) {
      if (size < 1 || batch % size != 0 || batch / size > kMostMicrobatches) {
        turn_down(PruneReason::kStructure);
        continue;
      }
      at_.micro_batch = size;
      add_branch(batch / size);
    }
  }

  /// Checks what depends on the layout only, with the default of every other choice.
  bool is_possible_layout() {
    if (!can_cut(traits_.blocks, at_.degrees.pipeline)) {
      turn_down(PruneReason::kStructure);
      return false;
    }
    Strategy probe = strategy_of({at_, {}, {}, {0, replication_defaults()}}, goal_, fixed_);
    probe.schedule = kDefaultSchedule;
    probe.data_parallelism = DataParallelism{};
    probe.global_batch = at_.degrees.data;
    const Plan plan{probe, even_cut(traits_.blocks, at_.degrees.pipeline)};
    if (!is_valid(plan)) {
      turn_down(PruneReason::kStructure);
      return false;
    }
    return !fixed_.trainer || runs(plan, is_of_layout);
  }

  /// False if the trainer lacks an ability of the kind that the plan needs.
  template <class Kind>
  bool runs(const Plan& plan, const Kind& kind) {
    for (const TrainerGap& gap : trainer_gaps(fixed_.trainer->abilities, plan)) {
      if (!kind(gap.ability)) continue;
      if (!space_.first_trainer_problem)
        space_.first_trainer_problem = problems_of({&gap, 1}, fixed_.trainer->name).front();
      turn_down(PruneReason::kTrainer);
      return false;
    }
    return true;
  }

  static bool is_of_layout(Ability ability) {
    switch (ability) {
      case Ability::kSchedules:
      case Ability::kZero:
      case Ability::kRecompute:
      case Ability::kRecomputeModules:
      case Ability::kStageCuts:
      case Ability::kBuckets:
        return false;
      default:
        return true;
    }
  }

  void add_branch(std::int64_t microbatches) {
    const std::int32_t pipelines = pipelines_of(microbatches);
    const std::int32_t replications = replications_of();
    if (space_.pipeline_lists[static_cast<std::size_t>(pipelines)].empty()) return;
    if (space_.replication_lists[static_cast<std::size_t>(replications)].empty()) return;
    space_.branches.push_back({at_, pipelines, replications});
  }

  // ---- pipelines ----

  std::int32_t pipelines_of(std::int64_t microbatches) {
    const auto key = std::pair(at_.degrees.pipeline, microbatches);
    const auto [known, is_new] =
        pipelines_.try_emplace(key, static_cast<std::int32_t>(space_.pipeline_lists.size()));
    if (is_new) space_.pipeline_lists.push_back(list_pipelines(microbatches));
    return known->second;
  }

  std::vector<PipelineChoice> list_pipelines(std::int64_t microbatches) {
    std::vector<PipelineChoice> found;
    for (const ScheduleRule& rule : schedule_rules()) {
      if (fixed_.schedule ? rule.name != *fixed_.schedule : !rule.worth_searching) continue;
      if (at_.degrees.pipeline == 1 && !fixed_.schedule && &rule != rule_without_pipeline()) {
        turn_down(PruneReason::kDominated);  // without a pipeline only its memory differs
        continue;
      }
      if (at_.degrees.pipeline > 1 && fixed_.trainer &&
          !accepts(fixed_.trainer->abilities.any, Ability::kSchedules, rule.name)) {
        turn_down(PruneReason::kTrainer);
        continue;
      }
      const std::vector<int> chunks = chunk_counts(rule, microbatches);
      if (chunks.empty()) turn_down(PruneReason::kSchedule);
      for (const int count : chunks) {
        ParallelDegrees degrees = at_.degrees;
        degrees.chunks = count;
        const auto placement = placement_of(rule, request_of(degrees, microbatches));
        const int parts = model_parts(*placement);
        if (can_cut(traits_.blocks, parts) && accepts_model(rule, count, parts, microbatches))
          found.push_back({&rule, count, parts, placement, schedule_traits(rule).splits_backward,
                           schedule_traits(rule).pairs_passes});
        else
          turn_down(PruneReason::kStructure);
      }
    }
    return found;
  }

  /// With the default of every other choice.
  bool accepts_model(const ScheduleRule& rule, int chunks, int parts, std::int64_t microbatches) {
    Strategy probe = strategy_of(fixed_);
    probe.degrees = {.pipeline = at_.degrees.pipeline, .chunks = chunks};
    probe.sequence_parallel = false;
    probe.micro_batch = 1;
    probe.global_batch = microbatches;
    probe.sequence_length = 1;
    probe.schedule = rule.name;
    probe.zero = 0;
    probe.recompute = {};
    probe.data_parallelism = {};
    probe.model_parallelism = {};
    return is_valid({probe, even_cut(traits_.blocks, parts)});
  }

  bool is_valid(const Plan& plan) {
    std::vector<Diagnostic> problems = check_plan(plan, model_, cluster_);
    if (!problems.empty() && !space_.first_problem)
      space_.first_problem = std::move(problems.front());
    return problems.empty();
  }

  /// Equal placements are shared.
  std::shared_ptr<const Placement> placement_of(const ScheduleRule& rule,
                                                const ScheduleRequest& request) {
    Placement placement = rule.placement(request);
    for (const auto& known : placements_[{request.devices, request.chunks}])
      if (*known == placement) return known;
    return placements_[{request.devices, request.chunks}].emplace_back(
        std::make_shared<const Placement>(std::move(placement)));
  }

  const ScheduleTraits& schedule_traits(const ScheduleRule& rule) {
    const auto [known, is_new] = schedule_traits_.try_emplace(&rule);
    if (is_new) known->second = traits_of(rule);
    return known->second;
  }

  /// On one device all orders take the same time: the rule with the fewest saved activations that
  /// the trainer has.
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

  // ---- recomputations ----

  void list_recomputes() {
    if (fixed_.recompute) {
      // "block:0" recomputes no block; in a candidate, 0 means that the number is not chosen yet.
      const bool no_block = *fixed_.recompute == Recompute{.kind = RecomputeKind::kBlocks};
      space_.recomputes = {no_block ? Recompute{} : *fixed_.recompute};
      return;
    }
    std::vector<Recompute> all{{}};
    if (fixed_.attention == AttentionAlgorithm::kStandard)
      all.push_back({.kind = RecomputeKind::kSelective});
    for (const std::uint32_t modules : module_sets())
      all.push_back({.kind = RecomputeKind::kModules, .modules = modules});
    all.push_back({.kind = RecomputeKind::kTorchSelective});
    all.push_back({.kind = RecomputeKind::kBlocks});
    all.push_back({.kind = RecomputeKind::kFull});
    for (const Recompute& recompute : all)
      if (is_possible(recompute)) space_.recomputes.push_back(recompute);
  }

  /// The smallest layout: one rank, one sequence.
  Plan plan_with(const Recompute& recompute) const {
    Strategy probe = strategy_of(fixed_);
    probe.degrees = ParallelDegrees{};
    probe.sequence_parallel = false;
    probe.micro_batch = 1;
    probe.zero = 0;
    probe.global_batch = 1;
    probe.sequence_length = goal_.sequence_length;
    probe.schedule = kDefaultSchedule;
    probe.data_parallelism = {};
    probe.model_parallelism = {};
    probe.recompute = recompute;
    return {probe, even_cut(traits_.blocks, 1)};
  }

  bool is_possible(const Recompute& recompute) {
    const Plan plan = plan_with(recompute);
    if (!check_plan(plan, model_, cluster_).empty()) return false;
    return !fixed_.trainer || runs(plan, [](Ability ability) {
      return ability == Ability::kRecompute || ability == Ability::kRecomputeModules;
    });
  }

  /// Every module alone; of those whose recomputation is cheap, one after another, all together;
  /// and with these each of the others.
  std::vector<std::uint32_t> module_sets() {
    const auto bit = [](RecomputeModule module) { return 1U << static_cast<unsigned>(module); };
    std::vector<std::uint32_t> possible, sets;
    for (int m = 0; m < kRecomputeModuleCount; ++m) {
      const std::uint32_t module = bit(static_cast<RecomputeModule>(m));
      if (is_possible({.kind = RecomputeKind::kModules, .modules = module}))
        possible.push_back(module);
    }
    std::uint32_t cheap = 0;
    const std::uint32_t all_cheap = bit(RecomputeModule::kLayerNorm) |
                                    bit(RecomputeModule::kMoeActivation) |
                                    bit(RecomputeModule::kMlaUpProjection);
    const auto add = [&](std::uint32_t set) {
      if (set != 0 && std::find(sets.begin(), sets.end(), set) == sets.end()) sets.push_back(set);
    };
    for (const std::uint32_t module : possible) add(module);
    for (const std::uint32_t module : possible)
      if ((module & all_cheap) != 0) add(cheap |= module);
    for (const std::uint32_t module : possible) add(cheap | module);
    return sets;
  }

  // ---- replications ----

  DataParallelism replication_defaults() const { return strategy_of(fixed_).data_parallelism; }

  std::int32_t replications_of() {
    const ParallelDegrees& d = at_.degrees;
    const auto key = std::tuple(replica_count(d), d.tensor, d.pipeline > 1, d.context > 1,
                                std::int64_t{d.expert} * d.expert_tensor);
    const auto [known, is_new] =
        replications_.try_emplace(key, static_cast<std::int32_t>(space_.replication_lists.size()));
    if (is_new) space_.replication_lists.push_back(list_replications());
    return known->second;
  }

  std::vector<Replication> list_replications() {
    std::vector<Replication> found;
    const bool is_alone = replica_count(at_.degrees) == 1;
    const bool is_sharded = fixed_.data_parallelism.kind == DataParallelKind::kCollective ||
                            fixed_.data_parallelism.kind == DataParallelKind::kRing;
    for (const int zero : choices(fixed_.zero, zero_levels_)) {
      if (zero > 0 && (is_alone || !is_sharded) && !fixed_.zero) continue;
      Replication at{zero, replication_defaults()};
      for (const int shard_ranks : shard_sizes(zero)) {
        at.data.shard_ranks = shard_ranks;
        for (const GradientBuckets& buckets : bucket_choices(zero, is_alone || !is_sharded)) {
          at.data.buckets = buckets;
          for (const bool overlap : gather_choices(zero, buckets.rule != BucketRule::kNone)) {
            at.data.overlap_gather = overlap;
            for (const bool reshard : choices(fixed_.reshard_after_forward, reshards(zero))) {
              at.data.reshard_after_forward = reshard;
              add_if_possible(at, found);
            }
          }
        }
      }
    }
    return found;
  }

  static std::vector<bool> reshards(int zero) {
    return zero == 3 ? std::vector<bool>{true, false} : std::vector<bool>{true};
  }

  /// All replicas, or those that share a node.
  std::vector<int> shard_sizes(int zero) const {
    if (fixed_.shard_ranks) return {*fixed_.shard_ranks};
    const std::int64_t replicas = replica_count(at_.degrees);
    const std::int64_t in_node = devices_per_node_ / at_.degrees.tensor;
    std::vector<int> sizes{0};
    if (zero > 0 && in_node > 1 && in_node < replicas && replicas % in_node == 0)
      sizes.push_back(static_cast<int>(in_node));
    return sizes;
  }

  std::vector<GradientBuckets> bucket_choices(int zero, bool is_alone) const {
    if (fixed_.buckets) return {*fixed_.buckets};
    std::vector<GradientBuckets> buckets{{}};
    if (zero < 3 && !is_alone)
      for (const BucketRule rule : bucket_rules_) buckets.push_back({.rule = rule, .bytes = {}});
    return buckets;
  }

  std::vector<bool> gather_choices(int zero, bool in_buckets) const {
    if (fixed_.overlap_gather) return {*fixed_.overlap_gather};
    if ((zero == 1 && in_buckets) || zero == 2) return {false, true};
    return {false};
  }

  void add_if_possible(const Replication& replication, std::vector<Replication>& found) {
    Strategy probe = strategy_of({at_, {}, {}, replication}, goal_, fixed_);
    probe.schedule = kDefaultSchedule;
    probe.recompute = {};
    probe.global_batch = std::int64_t{at_.degrees.data} * at_.micro_batch;
    const Plan plan{probe, even_cut(traits_.blocks, at_.degrees.pipeline)};
    if (!is_valid(plan)) return turn_down(PruneReason::kStructure);
    if (fixed_.trainer && !runs(plan, [](Ability ability) {
          return ability == Ability::kZero || ability == Ability::kBuckets ||
                 ability == Ability::kOptions;
        }))
      return;
    found.push_back(replication);
  }

  const ModelGraph& model_;
  const Cluster& cluster_;
  const Goal& goal_;
  const FixedChoices& fixed_;
  ModelTraits traits_;
  int devices_per_node_ = 1;
  std::vector<int> zero_levels_;          ///< searched if none is fixed
  std::vector<BucketRule> bucket_rules_;  ///< searched beside no buckets if none is fixed
  Layout at_;
  SearchSpace space_;
  std::map<std::pair<int, std::int64_t>, std::int32_t> pipelines_;
  std::map<std::pair<int, int>, std::vector<std::shared_ptr<const Placement>>> placements_;
  std::map<const ScheduleRule*, ScheduleTraits> schedule_traits_;
  std::map<std::tuple<std::int64_t, int, bool, bool, std::int64_t>, std::int32_t> replications_;
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

/// Axes in use, and options beyond the defaults.
int feature_count(const Candidate& c) {
  int count = 0;
  for (const ParallelSize& size : kParallelSizes) count += c.layout.degrees.*size.size > 1 ? 1 : 0;
  const DataParallelism& data = c.replication.data;
  for (const bool used : {c.pipeline.chunks > 1, c.layout.tensor_overlap,
                          c.layout.context != ContextAlgorithm::kAllGather, data.overlap_gather,
                          data.shard_ranks > 0, !data.reshard_after_forward, data.offload_optimizer,
                          data.buckets.rule != BucketRule::kNone})
    count += used ? 1 : 0;
  return count;
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

std::int64_t microbatches_of(const Layout& layout, const Goal& goal) {
  return goal.global_batch / (std::int64_t{layout.micro_batch} * layout.degrees.data);
}

Strategy strategy_of(const Candidate& candidate, const Goal& goal, const FixedChoices& fixed) {
  Strategy s = strategy_of(fixed);
  const Layout& layout = candidate.layout;
  s.degrees = layout.degrees;
  s.degrees.chunks = candidate.pipeline.chunks;
  s.sequence_parallel = layout.sequence_parallel;
  s.model_parallelism.tensor_overlap = layout.tensor_overlap;
  s.model_parallelism.context = layout.context;
  s.micro_batch = layout.micro_batch;
  s.global_batch = goal.global_batch;
  s.sequence_length = goal.sequence_length;
  if (candidate.pipeline.rule != nullptr) s.schedule = std::string(candidate.pipeline.rule->name);
  s.recompute = candidate.recompute;
  s.zero = candidate.replication.zero;
  s.data_parallelism = candidate.replication.data;
  return s;
}

bool is_simpler(const Candidate& a, const Candidate& b) {
  const auto key = [](const Candidate& c) {
    const DataParallelism& data = c.replication.data;
    const ParallelDegrees& d = c.layout.degrees;
    return std::tuple(feature_count(c), d.tensor, d.pipeline, d.context, d.expert, d.expert_tensor,
                      c.pipeline.chunks, c.layout.sequence_parallel, c.recompute.kind,
                      c.recompute.blocks, c.recompute.blocks_per_stage, c.recompute.modules,
                      c.replication.zero, -c.layout.micro_batch,
                      c.pipeline.rule - schedule_rules().data(), d, c.layout.context,
                      c.layout.tensor_overlap, data.buckets.rule, data.overlap_gather,
                      !data.reshard_after_forward, data.shard_ranks);
  };
  return key(a) < key(b);
}

Dtype default_dtype(const Cluster& cluster) {
  const DeviceModel& device = device_of(cluster, DeviceId(0));
  for (const Dtype dtype : {Dtype::kBf16, Dtype::kFp16})
    if (device.peak[static_cast<std::size_t>(dtype)]) return dtype;
  return Dtype::kFp32;
}

std::vector<Candidate> SearchSpace::candidates() const {
  std::vector<Candidate> all;
  for (const Branch& branch : branches)
    for (const PipelineChoice& pipeline : pipelines(branch))
      for (const Recompute& recompute : recomputes)
        for (const Replication& replication : replications(branch))
          all.push_back({branch.layout, pipeline, recompute, replication});
  return all;
}

SearchSpace make_space(const ModelGraph& model, const Cluster& cluster, const Goal& goal,
                       const FixedChoices& fixed) {
  check_goal(cluster, goal, fixed);
  return Enumeration(model, cluster, goal, fixed).run();
}

}  // namespace meshwright
