#include "planner/search/choice_lists.hpp"

#include <algorithm>
#include <bit>
#include <tuple>

#include "core/base/check.hpp"
#include "planner/search/mixed_stages.hpp"
#include "planner/search/stage_partition.hpp"
#include "planner/search/trainer_choices.hpp"

namespace meshwright {
namespace {

bool takes_several_chunks(const ScheduleRule& rule) {
  return !rule.problem(request_of({.pipeline = 2, .chunks = 2}, 8));
}

std::vector<bool> reshards(int zero) {
  return zero == 3 ? std::vector<bool>{true, false} : std::vector<bool>{true};
}

bool is_of_recompute(Ability ability) {
  return ability == Ability::kRecompute || ability == Ability::kRecomputeModules;
}

bool is_of_replication(Ability ability) {
  return ability == Ability::kZero || ability == Ability::kBuckets || ability == Ability::kOptions;
}

}  // namespace

int largest_node(const Cluster& cluster) {
  int most = 1;
  for (const NodeGroup& group : cluster.groups)
    most = std::max(most, cluster.nodes.at(group.node).device_count);
  return most;
}

Plan layout_probe(const Layout& layout, const Replication& replication, const Goal& goal,
                  const FixedChoices& fixed, int blocks) {
  Strategy probe = strategy_of({layout, {}, {}, replication}, goal, fixed);
  probe.schedule = kDefaultSchedule;
  probe.recompute = {};
  probe.global_batch = std::int64_t{layout.degrees.data} * layout.micro_batch;
  probe.model_parallelism.routing.overlap = false;  // needs an interleaved schedule
  return {probe, even_cut(blocks, layout.degrees.pipeline)};
}

ChoiceLists::ChoiceLists(const ModelGraph& model, const Cluster& cluster, const Goal& goal,
                         const FixedChoices& fixed, SearchSpace& space)
    : model_(model),
      cluster_(cluster),
      goal_(goal),
      fixed_(fixed),
      space_(space),
      blocks_(block_count(model)),
      devices_per_node_(largest_node(cluster)) {}

bool ChoiceLists::is_valid(const Plan& plan) {
  std::vector<Diagnostic> problems = check_plan(plan, model_, cluster_);
  if (!problems.empty() && !space_.first_problem)
    space_.first_problem = std::move(problems.front());
  return problems.empty();
}

bool ChoiceLists::can_run(const Plan& plan, bool (*is_of_kind)(Ability)) {
  if (!fixed_.trainer) return true;
  for (const TrainerGap& gap : trainer_gaps(fixed_.trainer->abilities, plan)) {
    if (!is_of_kind(gap.ability)) continue;
    if (!space_.first_trainer_problem)
      space_.first_trainer_problem = problems_of({&gap, 1}, fixed_.trainer->name).front();
    turn_down(PruneReason::kTrainer);
    return false;
  }
  return true;
}

// ---- pipelines ----

std::int32_t ChoiceLists::pipelines_of(const Layout& layout) {
  const auto [known, is_new] = pipelines_.try_emplace(
      {layout.degrees.pipeline, microbatches_of(layout, goal_), replica_count(layout.degrees) > 1},
      static_cast<std::int32_t>(space_.pipeline_lists.size()));
  if (is_new) space_.pipeline_lists.push_back(list_pipelines(layout));
  return known->second;
}

namespace {

int relief_count(const Cluster& cluster, const FixedChoices& fixed) {
  if (fixed.trainer && !cuts_freely(*fixed.trainer)) return 1;
  const Bytes first = device_of(cluster, DeviceId(0)).memory;
  const bool are_equal = std::ranges::all_of(cluster.groups, [&](const NodeGroup& group) {
    return cluster.devices.at(cluster.nodes.at(group.node).device).memory == first;
  });
  return are_equal ? 1 : kReliefs;
}

void find_equal_bounds(std::vector<PipelineChoice>& pipelines) {
  const auto inputs_of = [](const PipelineChoice& pipeline) {
    return std::tuple(pipeline.placement.get(), pipeline.splits_backward,
                      pipeline.rule->output_barriers > 0, pipeline.relief);
  };
  for (PipelineChoice& pipeline : pipelines)
    while (inputs_of(pipelines[pipeline.bounded_as]) != inputs_of(pipeline)) ++pipeline.bounded_as;
}

}  // namespace

std::vector<PipelineChoice> ChoiceLists::list_pipelines(const Layout& layout) {
  std::vector<PipelineChoice> found;
  ScheduleRequest request = request_of(layout.degrees, microbatches_of(layout, goal_));
  const bool is_replicated = replica_count(layout.degrees) > 1;
  const int reliefs = layout.degrees.pipeline > 1 ? relief_count(cluster_, fixed_) : 1;
  for (const ScheduleRule& rule : schedule_rules()) {
    if (fixed_.schedule ? rule.name != *fixed_.schedule : !rule.worth_searching) continue;
    if (request.devices == 1 && !fixed_.schedule && !is_for_one_device(rule, is_replicated)) {
      turn_down(PruneReason::kDominated);
      continue;
    }
    if (request.devices > 1 && fixed_.trainer &&
        !accepts(fixed_.trainer->abilities.any, Ability::kSchedules, rule.name)) {
      turn_down(PruneReason::kTrainer);
      continue;
    }
    const std::vector<int> chunks = chunk_counts(rule, request);
    if (chunks.empty()) turn_down(PruneReason::kSchedule);
    for (const int count : chunks) {
      request.chunks = count;
      const auto placement = placement_of(rule, request);
      const int parts = model_parts(*placement);
      if (!can_cut(blocks_, parts) || !accepts_model(request, rule, parts)) {
        turn_down(PruneReason::kStructure);
        continue;
      }
      for (int relief = 0; relief < reliefs; ++relief)
        found.push_back({&rule, count, parts, placement, schedule_traits(rule).splits_backward,
                         schedule_traits(rule).pairs_passes, relief});
    }
  }
  find_equal_bounds(found);
  return found;
}

/// On one device, orders differ in memory and in when gradients can be reduced. Two rules are
/// enough: the one with the fewest saved activations, and with replicas also the one with the
/// fewest among those that split the backward pass.
bool ChoiceLists::is_for_one_device(const ScheduleRule& rule, bool is_replicated) {
  const ScheduleRequest two = request_of(ParallelDegrees{}, 2);
  const bool splits_backward = schedule_traits(rule).splits_backward;
  if (splits_backward && !is_replicated) return false;
  const ScheduleRule* leanest = nullptr;
  double least = 0;
  for (const ScheduleRule& other : schedule_rules()) {
    if (!other.worth_searching || other.problem(two) ||
        schedule_traits(other).splits_backward != splits_backward)
      continue;
    const double peak = other.peak_activations(two, PipelineRankId(0));
    if (leanest != nullptr && peak >= least) continue;
    leanest = &other;
    least = peak;
  }
  return leanest == &rule;
}

/// With the default of every other choice, and all devices, so that they can be spread over nodes.
bool ChoiceLists::accepts_model(const ScheduleRequest& request, const ScheduleRule& rule,
                                int parts) {
  Strategy probe = smallest_strategy(fixed_);
  probe.degrees = {
      .data = goal_.gpus / request.devices, .pipeline = request.devices, .chunks = request.chunks};
  probe.global_batch = std::int64_t{request.microbatches} * probe.degrees.data;
  probe.schedule = rule.name;
  return is_valid({probe, even_cut(blocks_, parts)});
}

/// Equal placements are shared.
std::shared_ptr<const Placement> ChoiceLists::placement_of(const ScheduleRule& rule,
                                                           const ScheduleRequest& request) {
  Placement placement = rule.placement(request);
  auto& of_size = placements_[{request.devices, request.chunks}];
  for (const auto& known : of_size)
    if (*known == placement) return known;
  return of_size.emplace_back(std::make_shared<const Placement>(std::move(placement)));
}

/// Judged by the smallest valid schedule.
ChoiceLists::ScheduleTraits ChoiceLists::traits_of(const ScheduleRule& rule) {
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

const ChoiceLists::ScheduleTraits& ChoiceLists::schedule_traits(const ScheduleRule& rule) {
  const auto [known, is_new] = schedule_traits_.try_emplace(&rule);
  if (is_new) known->second = traits_of(rule);
  return known->second;
}

/// Chunk counts supported by the rule. A rule for several chunks is never used with one, as in
/// Megatron-LM, which rejects that.
std::vector<int> ChoiceLists::chunk_counts(const ScheduleRule& rule,
                                           const ScheduleRequest& request) const {
  std::vector<int> free{1};
  const int most = request.devices > 1 ? (blocks_ + 2) / request.devices : 1;
  const int per_device = divide_up(blocks_, request.devices);
  for (int count = 2; count <= most; ++count)
    if (std::has_single_bit(static_cast<unsigned>(count)) || per_device % count == 0)
      free.push_back(count);
  std::vector<int> counts = choices(fixed_.chunks, free);
  std::erase_if(counts, [&](int count) {
    ScheduleRequest with_chunks = request;
    with_chunks.chunks = count;
    return rule.problem(with_chunks).has_value();
  });
  if (!fixed_.chunks && takes_several_chunks(rule)) std::erase(counts, 1);
  return counts;
}

// ---- recomputations ----

void ChoiceLists::list_recomputes() {
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

/// On one rank with one sequence.
bool ChoiceLists::is_possible(const Recompute& recompute) {
  Strategy probe = smallest_strategy(fixed_);
  probe.sequence_length = goal_.sequence_length;
  probe.recompute = recompute;
  const Plan plan{probe, even_cut(blocks_, 1)};
  return check_plan(plan, model_, cluster_).empty() && can_run(plan, is_of_recompute);
}

/// Every module alone; of those whose recomputation is cheap, one after another, all together;
/// and with these each of the others.
std::vector<std::uint32_t> ChoiceLists::module_sets() {
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

std::int32_t ChoiceLists::replications_of(const Layout& layout) {
  const ParallelDegrees& d = layout.degrees;
  const auto key = std::tuple(replica_count(d), d.tensor, d.pipeline > 1, d.context > 1,
                              std::int64_t{d.expert} * d.expert_tensor);
  const auto [known, is_new] =
      replications_.try_emplace(key, static_cast<std::int32_t>(space_.replication_lists.size()));
  if (is_new) space_.replication_lists.push_back(list_replications(layout));
  return known->second;
}

std::vector<Replication> ChoiceLists::list_replications(const Layout& layout) {
  std::vector<Replication> found;
  const DataParallelism defaults = strategy_of(fixed_).data_parallelism;
  const bool is_reduced =
      replica_count(layout.degrees) > 1 &&
      (defaults.kind == DataParallelKind::kCollective || defaults.kind == DataParallelKind::kRing);
  for (const int zero : choices(fixed_.zero, zero_levels_to_search(fixed_))) {
    if (zero > 0 && !is_reduced && !fixed_.zero) continue;
    Replication at{zero, defaults};
    for (const int shard_ranks : shard_sizes(layout.degrees, zero)) {
      at.data.shard_ranks = shard_ranks;
      for (const GradientBuckets& buckets : bucket_choices(zero, is_reduced)) {
        at.data.buckets = buckets;
        for (const bool overlap : gather_choices(zero, buckets.rule != BucketRule::kNone)) {
          at.data.overlap_gather = overlap;
          for (const bool reshard : choices(fixed_.reshard_after_forward, reshards(zero))) {
            at.data.reshard_after_forward = reshard;
            if (is_possible(layout, at)) found.push_back(at);
          }
        }
      }
    }
  }
  return found;
}

/// All replicas, or those that share a node.
std::vector<int> ChoiceLists::shard_sizes(const ParallelDegrees& degrees, int zero) const {
  if (fixed_.shard_ranks) return {*fixed_.shard_ranks};
  const std::int64_t replicas = replica_count(degrees);
  const std::int64_t in_node = devices_per_node_ / degrees.tensor;
  std::vector<int> sizes{0};
  if (zero > 0 && in_node > 1 && in_node < replicas && replicas % in_node == 0)
    sizes.push_back(static_cast<int>(in_node));
  return sizes;
}

std::vector<GradientBuckets> ChoiceLists::bucket_choices(int zero, bool is_reduced) const {
  if (fixed_.buckets) return {*fixed_.buckets};
  std::vector<GradientBuckets> buckets{{}};
  if (zero < 3 && is_reduced)
    for (const BucketRule rule : bucket_rules_to_search(fixed_))
      buckets.push_back({.rule = rule, .bytes = {}});
  return buckets;
}

std::vector<bool> ChoiceLists::gather_choices(int zero, bool in_buckets) const {
  if (fixed_.overlap_gather) return {*fixed_.overlap_gather};
  if ((zero == 1 && in_buckets) || zero == 2) return {false, true};
  return {false};
}

/// With the default of every other choice below the layout, and one micro-batch.
bool ChoiceLists::is_possible(const Layout& layout, const Replication& replication) {
  const Plan plan = layout_probe(layout, replication, goal_, fixed_, blocks_);
  if (is_valid(plan)) return can_run(plan, is_of_replication);
  turn_down(PruneReason::kStructure);
  return false;
}

}  // namespace meshwright
