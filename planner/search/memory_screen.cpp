#include "planner/search/memory_screen.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/check.hpp"
#include "core/lowering/lower.hpp"
#include "core/operators/shard_shape.hpp"
#include "core/schedule/timing.hpp"
#include "planner/search/bounds.hpp"
#include "simulator/predict/predict.hpp"

namespace meshwright {
namespace {

/// `capacity_of` a pipeline rank, whose peaks are given. Of the first rank with the largest
/// shortfall.
template <class CapacityOf>
std::optional<MemoryShortfall> shortfall_in(std::span<const Bytes> peaks,
                                            const CapacityOf& capacity_of) {
  std::optional<MemoryShortfall> largest;
  for (std::size_t rank = 0; rank < peaks.size(); ++rank) {
    const Bytes capacity = capacity_of(rank);
    if (peaks[rank] <= capacity ||
        (largest && peaks[rank] - capacity <= largest->needed - largest->capacity))
      continue;
    largest = {.needed = peaks[rank], .capacity = capacity, .position = static_cast<int>(rank)};
  }
  return largest;
}

/// The number of micro-batches beyond which the peak memory of a schedule that frees activations
/// before all forward passes have run no longer grows, in pipelines.
constexpr std::int64_t kPipelinesUntilSteady = 3;

/// The request with at most that many micro-batches, as far as the rule supports fewer.
ScheduleRequest until_steady(const ScheduleRule& rule, const ScheduleRequest& request) {
  ScheduleRequest fewer = request;
  for (std::int64_t m = kPipelinesUntilSteady * request.devices; m < request.microbatches; ++m) {
    fewer.microbatches = static_cast<int>(m);
    if (!rule.problem(fewer)) return fewer;
  }
  return request;
}

}  // namespace

std::optional<MemoryShortfall> shortfall_of(const Plan& plan, const SearchJob& job) {
  const JobFacts facts = job_facts(plan.strategy, job.model, job.cluster);
  if (cuts_passes(plan.strategy))
    return shortfall_of(lower(plan, job.model, job.cluster, {.memory = job.cost_model.memory()}),
                        facts);
  const LoweredStages lowered = lower_stages(plan, job.model, job.cluster, job.cost_model.memory());
  return shortfall_in(peak_of_passes(lowered, schedule_of(plan)),
                      [&](std::size_t rank) { return capacity_at(facts, rank); });
}

namespace {

std::vector<Bytes> total_peaks(const TaskGraph& graph) {
  std::vector<Bytes> peaks;
  for (const MemoryAmounts& peak : peak_memory_by_rank(graph)) peaks.push_back(total(peak));
  return peaks;
}

}  // namespace

std::optional<MemoryShortfall> shortfall_of(const TaskGraph& graph, const JobFacts& facts) {
  return shortfall_in(total_peaks(graph), [&](std::size_t rank) {
    return capacity_at(facts, static_cast<std::size_t>(graph.ranks[rank].coordinate.pipeline));
  });
}

namespace {

/// Of a rank.
struct Count {
  int stages = 0, held = 0;  ///< held: micro-batches of stages
};
std::vector<Count> counts_of(const HeldActivations& held, const Placement& placement) {
  std::vector<Count> counts(held.of_any.size());
  for (std::size_t s = 0; s < held.of_stage.size(); ++s) {
    Count& count = counts[placement.device_of_stage[s].index()];
    ++count.stages;
    count.held += held.of_stage[s].whole + held.of_stage[s].to_weight;
  }
  return counts;
}

void forget_stages(HeldActivations& held, const Placement& placement) {
  const std::vector<Count> counts = counts_of(held, placement);
  for (std::size_t rank = 0; rank < counts.size(); ++rank) held.of_any[rank] += counts[rank].held;
  std::ranges::fill(held.of_stage, HeldActivations::OfStage());
}

}  // namespace

MemoryScreen::MemoryScreen(const SearchJob& job, CandidateCosts& costs)
    : job_(job),
      costs_(costs),
      capacity_(device_of(job.cluster, DeviceId(0)).memory),
      counts_buffers_(device_of(job.cluster, DeviceId(0)).kernels == KernelLibrary::kOwn) {}

Bytes MemoryScreen::capacity_at(const LayerCosts& layers, std::size_t rank) const {
  return layers.mixed.memory.empty() ? capacity_ : layers.mixed.memory[rank];
}

ScheduleRequest MemoryScreen::schedule_request(const Candidate& candidate) const {
  ParallelDegrees degrees = candidate.layout.degrees;
  degrees.chunks = candidate.pipeline.chunks;
  return request_of(degrees, microbatches_of(candidate.layout, job_.goal));
}

namespace {

/// Raises the first moment to the peak that the rule is known to reach.
void reach_peak(HeldActivations& held, const Candidate& candidate, const ScheduleRequest& request) {
  const ScheduleRule& rule = *candidate.pipeline.rule;
  if (!rule.reaches_peak) return;
  const Placement& placement = *candidate.pipeline.placement;
  const std::vector<Count> counts = counts_of(held, placement);
  const auto copies = static_cast<double>(placement.routes.size());
  // Of a pair, the backward pass may free its activations first.
  const double freed = candidate.pipeline.pairs_passes ? 1.0 / request.chunks : 0.0;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    const PipelineRankId device(static_cast<int>(rank));
    const double peak = rule.peak_activations(request, device) - freed;
    held.of_any[rank] = peak * counts[rank].stages / copies - counts[rank].held;
  }
}

}  // namespace

std::vector<HeldActivations> MemoryScreen::held_by_formula(const Candidate& candidate) const {
  const Placement& placement = *candidate.pipeline.placement;
  HeldActivations held;
  held.of_stage.resize(placement.device_of_stage.size());
  held.of_any.assign(static_cast<std::size_t>(placement.devices), 0);
  reach_peak(held, candidate, schedule_request(candidate));
  return {held};
}

std::vector<HeldActivations> MemoryScreen::held_activations(const Candidate& candidate) {
  const ScheduleRule& rule = *candidate.pipeline.rule;
  const ScheduleRequest request = schedule_request(candidate);
  const ScheduleRequest fewer = until_steady(rule, request);
  std::vector<HeldActivations> moments = *held_.get(
      schedule_key(rule, fewer), [&] { return held_at_peaks(*costs_.schedule_of(rule, fewer)); });
  for (HeldActivations& held : moments)
    std::ranges::fill(held.of_any, candidate.pipeline.pairs_passes ? -1 : 0);
  // Schedules that hold all micro-batches hold more than those few.
  reach_peak(moments.front(), candidate, request);
  const Placement& placement = *candidate.pipeline.placement;
  if (placement.routes.size() > 1 && fewer.microbatches < request.microbatches) {
    moments.resize(1);  // with more micro-batches, peaks may be on other stages
    forget_stages(moments.front(), placement);
  }
  return moments;
}

namespace {

/// How a rank holds the state of one stage.
class StateShards {
 public:
  StateShards(const Candidate& candidate, const Strategy& strategy, const TrainerMemory& memory)
      : strategy_(strategy),
        state_(model_state_bytes(strategy, memory)),
        copies_(static_cast<std::int64_t>(candidate.pipeline.placement->routes.size())) {
    const ParallelDegrees& d = candidate.layout.degrees;
    const std::int64_t shard = strategy.data_parallelism.shard_ranks;
    dense_ = shard > 0 ? shard : replica_count(d);
    expert_ = shard > 0 ? shard : stage_rank_count(d) / (std::int64_t{d.expert} * d.expert_tensor);
    if (memory.most_gathered_parameters > 0) return;  // less than whole units at a time
    if (strategy.zero >= 3) gathered_element_ = stored_element(strategy.dtype).value;
    if (strategy.zero >= 2 && !candidate.pipeline.splits_backward &&
        !candidate.pipeline.pairs_passes)
      unreduced_element_ = state_.unreduced;
  }

  Bytes resident(const LocalParameters& parameters) const {
    const std::int64_t share =
        parameters.dense / (copies_ * dense_) + parameters.expert / (copies_ * expert_);
    const auto held_with = [&](int zero) {
      return strategy_.zero >= zero ? share : parameters.dense + parameters.expert;
    };
    Bytes bytes(state_.weights * held_with(3) + state_.gradients * held_with(2));
    if (!strategy_.data_parallelism.offload_optimizer)
      bytes += Bytes(state_.optimizer * held_with(1));
    return bytes;
  }
  /// While micro-batches of the stage wait for their backward passes.
  Bytes kept(const LocalParameters& parameters) const {
    return strategy_.data_parallelism.reshard_after_forward ? Bytes() : gathered(parameters);
  }
  /// While a unit of these layers runs: its weights, in the backward pass also its gradients.
  Bytes of_forward(const LocalParameters& parameters) const {
    return gathered(parameters) - kept(parameters);
  }
  Bytes of_backward(const LocalParameters& parameters) const {
    return of_forward(parameters) + Bytes(unreduced_element_ * sharded(parameters));
  }

 private:
  Bytes gathered(const LocalParameters& parameters) const {
    return Bytes(gathered_element_ * sharded(parameters));
  }
  std::int64_t sharded(const LocalParameters& parameters) const {
    return (dense_ > 1 ? parameters.dense : 0) + (expert_ > 1 ? parameters.expert : 0);
  }

  const Strategy& strategy_;
  ModelStateBytes state_;
  std::int64_t copies_, dense_ = 1, expert_ = 1;
  std::int64_t gathered_element_ = 0, unreduced_element_ = 0;  ///< bytes
};

struct PartMemory {
  SavedBytes saved;
  LocalParameters parameters;
  /// Beside them when the last layer runs, of whole passes when any layer runs.
  Bytes in_forward, in_backward;
};

/// Sums over the layers of every part; without the embedding and the head if the pipeline ranks
/// share them.
std::vector<PartMemory> part_memory(const ModelGraph& model, std::span<const LayerMemory> classes,
                                    std::span<const int> cut, const Recompute& recompute,
                                    const PipelineChoice& pipeline, const StateShards& shards,
                                    bool has_whole_passes) {
  std::vector<PartMemory> parts(cut.size());
  const auto add = [&](PartMemory& part, std::size_t layer, bool full) {
    const LayerMemory& held = classes[static_cast<std::size_t>(model.layers[layer].layer_class)];
    const Bytes whole = full ? held.saved_if_full : held.saved;
    part.saved.whole += whole;
    part.saved.to_weight += pipeline.splits_backward ? held.saved_to_weight : whole;
    part.parameters += held.parameters;
    const Bytes forward = held.in_forward + shards.of_forward(held.parameters),
                backward = (full ? held.in_backward_if_full : held.in_backward) +
                           shards.of_backward(held.parameters);
    part.in_forward = has_whole_passes ? std::max(part.in_forward, forward) : forward;
    part.in_backward = has_whole_passes ? std::max(part.in_backward, backward) : backward;
  };
  const bool shares_ends = pipeline.rule->output_barriers > 0;
  std::size_t layer = 1;
  if (!shares_ends) add(parts.front(), 0, false);
  for (std::size_t i = 0; i < cut.size(); ++i) {
    const int recomputed = recomputed_blocks(recompute, static_cast<int>(i));
    for (int block = 0; block < cut[i]; ++block) add(parts[i], layer++, block < recomputed);
  }
  if (!shares_ends) add(parts.back(), layer, false);
  for (PartMemory& part : parts) part.saved.shared = shards.kept(part.parameters);
  return parts;
}

/// True unless every pass of a stage is cut into units. ZeRO 0 and 1 cut the first forward and the
/// last backward pass only.
bool has_whole_passes(int zero, const DataParallelism& data, std::int64_t microbatches,
                      const Placement& placement) {
  return !cuts_passes(zero, data) ||
         (zero <= 1 && microbatches > static_cast<std::int64_t>(placement.routes.size()));
}

/// On the device that needs least.
Bytes fixed_memory_of(const Strategy& strategy, const SearchJob& job) {
  Bytes least = Bytes::max();
  for (const NodeGroup& group : job.cluster.groups) {
    const DeviceModel& device = job.cluster.devices.at(job.cluster.nodes.at(group.node).device);
    least = std::min(least, fixed_memory(strategy, device, job.cost_model.memory()));
  }
  return least;
}

/// The least of the stages of every rank.
std::vector<Bytes> least_of_ranks(const Placement& placement, std::span<const PartMemory> parts,
                                  Bytes PartMemory::*amount) {
  std::vector<Bytes> least(static_cast<std::size_t>(placement.devices), Bytes::max());
  for (std::size_t s = 0; s < placement.device_of_stage.size(); ++s) {
    Bytes& of_rank = least[placement.device_of_stage[s].index()];
    of_rank =
        std::min(of_rank, parts[static_cast<std::size_t>(placement.part_of_stage[s])].*amount);
  }
  return least;
}

/// Raises `most` to the sums.
void raise_to_sums(std::span<const Bytes> held, std::span<const Bytes> beside,
                   std::vector<Bytes>& most) {
  most.resize(held.size());
  for (std::size_t rank = 0; rank < held.size(); ++rank)
    most[rank] = std::max(most[rank], held[rank] + beside[rank]);
}

/// The moment with the most micro-batches between forward pass and input gradients, without those
/// that wait for weight gradients. Null if backward passes are not split.
std::optional<HeldActivations> before_input_gradients(std::span<const HeldActivations> moments) {
  constexpr std::size_t kMostWhole = 2;  // see held_at_peaks()
  if (moments.size() <= kMostWhole) return std::nullopt;
  HeldActivations held = moments[kMostWhole];
  for (HeldActivations::OfStage& stage : held.of_stage) stage.to_weight = 0;
  return held;
}

}  // namespace

/// What the memory of a candidate consists of, but for the micro-batches that are held.
struct StageMemory {
  std::vector<SavedBytes> saved;                         ///< by stage
  std::vector<Bytes> resident, in_forward, in_backward;  ///< by rank
};

/// Everything that StageMemory depends on; equal cuts and placements are shared.
struct StageMemoryKey {
  SharedLayers layers;
  std::shared_ptr<const std::vector<int>> cut;
  std::shared_ptr<const Placement> placement;
  Layout layout;
  Recompute recompute;
  Replication replication;
  bool splits_backward = false, pairs_passes = false, shares_ends = false, whole_passes = false;
  friend bool operator==(const StageMemoryKey&, const StageMemoryKey&) = default;
};

StageMemory stage_memory(const StageMemoryKey& key, const Candidate& candidate,
                         const SearchJob& job) {
  const Strategy strategy = strategy_of(candidate, job.goal, job.fixed);
  const StateShards shards(candidate, strategy, job.cost_model.memory());
  const Placement& placement = *key.placement;
  const std::vector<PartMemory> parts =
      part_memory(job.model, key.layers->memory, *key.cut, key.recompute, candidate.pipeline,
                  shards, key.whole_passes);
  StageMemory memory;
  memory.resident.assign(static_cast<std::size_t>(placement.devices),
                         fixed_memory_of(strategy, job));
  for (std::size_t s = 0; s < placement.device_of_stage.size(); ++s) {
    const PartMemory& part = parts[static_cast<std::size_t>(placement.part_of_stage[s])];
    memory.saved.push_back(part.saved);
    memory.resident[placement.device_of_stage[s].index()] += shards.resident(part.parameters);
  }
  memory.in_forward = least_of_ranks(placement, parts, &PartMemory::in_forward);
  memory.in_backward = least_of_ranks(placement, parts, &PartMemory::in_backward);
  return memory;
}

/// Of the last few candidates of this thread: many differ in the order of their passes only.
const StageMemory& recent_stage_memory(const StageMemoryKey& key, const Candidate& candidate,
                                       const SearchJob& job) {
  constexpr std::size_t kRecent = 8;
  thread_local std::array<std::pair<StageMemoryKey, StageMemory>, kRecent> recent;
  thread_local std::size_t oldest = 0;
  for (const auto& [known, memory] : recent)
    if (known == key) return memory;
  auto& made = recent[oldest];
  oldest = (oldest + 1) % kRecent;
  made = {key, stage_memory(key, candidate, job)};
  return made.second;
}

/// When a rank holds the most, one of its forward passes has just run, and a backward pass is the
/// next, but for passes for weight gradients in between. Of a pair, what it frees may come first.
std::optional<MemoryShortfall> MemoryScreen::rough_shortfall_of(const Candidate& candidate,
                                                                const SharedLayers& layers,
                                                                HeldCount count) {
  if (counts_buffers_) return std::nullopt;
  Recompute recompute = candidate.recompute;
  if (recompute == Recompute{.kind = RecomputeKind::kBlocks}) recompute = {RecomputeKind::kFull};
  const Placement& placement = *candidate.pipeline.placement;
  const StageMemory& stages = recent_stage_memory(
      {.layers = layers,
       .cut = costs_.stage_cut(layers, candidate.pipeline, candidate.recompute),
       .placement = candidate.pipeline.placement,
       .layout = candidate.layout,
       .recompute = recompute,
       .replication = candidate.replication,
       .splits_backward = candidate.pipeline.splits_backward,
       .pairs_passes = candidate.pipeline.pairs_passes,
       .shares_ends = candidate.pipeline.rule->output_barriers > 0,
       .whole_passes = has_whole_passes(candidate.replication.zero, candidate.replication.data,
                                        microbatches_of(candidate.layout, job_.goal), placement)},
      candidate, job_);

  const auto shortfall_with = [&](std::span<const HeldActivations> moments) {
    std::vector<Bytes> peaks = most_bytes_of(moments, placement, stages.saved);
    if (!candidate.pipeline.pairs_passes) {
      const std::vector<Bytes> held = peaks;
      raise_to_sums(held, stages.in_forward, peaks);
      if (!candidate.pipeline.splits_backward)
        raise_to_sums(held, stages.in_backward, peaks);
      else if (const auto before = before_input_gradients(moments))
        raise_to_sums(bytes_of(*before, placement, stages.saved), stages.in_backward, peaks);
    }
    for (std::size_t rank = 0; rank < peaks.size(); ++rank) peaks[rank] += stages.resident[rank];
    return shortfall_in(peaks, [&](std::size_t rank) { return capacity_at(*layers, rank); });
  };
  std::optional<MemoryShortfall> shortfall = shortfall_with(held_by_formula(candidate));
  if (!shortfall && count == HeldCount::kOrders)
    shortfall = shortfall_with(held_activations(candidate));
  return shortfall;
}

/// If all passes are cut into units, memory depends on the order of the units: they are lowered,
/// with the micro-batches of one peak.
std::vector<Bytes> MemoryScreen::peaks_of(const Candidate& candidate) {
  Plan plan = costs_.plan_of(candidate);
  const TrainerMemory& memory = job_.cost_model.memory();
  Strategy& s = plan.strategy;
  if (s.zero >= 2) {
    const ScheduleRequest request = until_steady(*candidate.pipeline.rule, request_of(s));
    s.global_batch = std::int64_t{request.microbatches} * s.micro_batch * s.degrees.data;
    return total_peaks(lower(plan, job_.model, job_.cluster, {.memory = memory}));
  }
  // Otherwise only the first forward and the last backward pass may be cut.
  const LoweredStages lowered = lower_stages(plan, job_.model, job_.cluster, memory);
  const ScheduleRequest request = request_of(s);
  const ScheduleRequest fewer = until_steady(*candidate.pipeline.rule, request);
  if (candidate.pipeline.splits_backward &&
      (!cuts_passes(s) || fewer.microbatches < request.microbatches))
    return peak_of_passes(lowered, *costs_.schedule_of(*candidate.pipeline.rule, fewer));
  const Placement& placement = *candidate.pipeline.placement;
  return least_peaks(lowered, placement, held_activations(candidate),
                     candidate.pipeline.splits_backward,
                     has_whole_passes(s.zero, s.data_parallelism, request.microbatches, placement));
}

std::optional<MemoryShortfall> MemoryScreen::shortfall_of(const Candidate& candidate) {
  Candidate leanest = candidate;
  Recompute& recompute = leanest.recompute;
  if (recompute == Recompute{.kind = RecomputeKind::kBlocks}) recompute = {RecomputeKind::kFull};
  const SharedLayers layers = costs_.layers(candidate.layout, candidate.recompute);
  return shortfall_in(peaks_of(leanest),
                      [&](std::size_t rank) { return capacity_at(*layers, rank); });
}

std::optional<PruneReason> MemoryScreen::choose_blocks(Candidate& candidate, int least, bool rough,
                                                       MemoryShortfall& shortfall) {
  const SharedLayers layers = costs_.layers(candidate.layout, candidate.recompute);
  const auto cut = costs_.stage_cut(layers, candidate.pipeline, candidate.recompute);
  const int all = *std::max_element(cut->begin(), cut->end());
  const auto shortfall_with = [&](int blocks) {
    Candidate changed = candidate;
    changed.recompute = blocks == 0 ? Recompute{} : Recompute{RecomputeKind::kBlocks, blocks};
    return rough && !counts_buffers_ ? rough_shortfall_of(changed, layers) : shortfall_of(changed);
  };
  if (least == 1 && all <= 1) return PruneReason::kDominated;
  int too_few = least - 1, enough = all - 1;
  if (too_few >= enough) return PruneReason::kDominated;
  if (const auto found = shortfall_with(enough)) {
    shortfall = *found;
    return PruneReason::kMemory;
  }
  while (enough - too_few > 1) {
    const int middle = (too_few + enough) / 2;
    (shortfall_with(middle) ? too_few : enough) = middle;
  }
  candidate.recompute.blocks = enough;
  return std::nullopt;
}

}  // namespace meshwright
