#include "planner/search/memory_screen.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/lowering/lower.hpp"
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

MemoryScreen::MemoryScreen(const SearchJob& job, CandidateCosts& costs)
    : job_(job),
      costs_(costs),
      capacity_(device_of(job.cluster, DeviceId(0)).memory),
      counts_buffers_(device_of(job.cluster, DeviceId(0)).kernels == KernelLibrary::kOwn) {}

Bytes MemoryScreen::capacity_at(const LayerCosts& layers, std::size_t rank) const {
  return layers.mixed.memory.empty() ? capacity_ : layers.mixed.memory[rank];
}

/// By pipeline rank, in micro-batches of all its stages.
std::vector<double> MemoryScreen::held_activations(const Candidate& candidate) {
  const ScheduleRule& rule = *candidate.pipeline.rule;
  ParallelDegrees degrees = candidate.layout.degrees;
  degrees.chunks = candidate.pipeline.chunks;
  const std::int64_t microbatches = microbatches_of(candidate.layout, job_.goal);
  ScheduleRequest request = request_of(degrees, microbatches);
  if (rule.reaches_peak) {
    std::vector<double> held;
    held.reserve(static_cast<std::size_t>(request.devices));
    // Of a pair, the backward pass may free its activations first.
    const double freed = candidate.pipeline.pairs_passes ? 1.0 / request.chunks : 0.0;
    for (int d = 0; d < request.devices; ++d)
      held.push_back(rule.peak_activations(request, PipelineRankId(d)) - freed);
    return held;
  }
  request = until_steady(rule, request);
  return *held_.get(schedule_key(rule, request),
                    [&] { return peak_activations(*costs_.schedule_of(rule, request)); });
}

namespace {

struct PartMemory {
  Bytes saved;
  std::int64_t dense = 0, expert = 0;
};

/// Sums over the layers of every part; without the embedding and the head if the pipeline ranks
/// share them.
std::vector<PartMemory> part_memory(const ModelGraph& model, std::span<const LayerMemory> classes,
                                    std::span<const int> cut, const Recompute& recompute,
                                    const PipelineChoice& pipeline) {
  std::vector<PartMemory> parts(cut.size());
  const auto add = [&](PartMemory& part, std::size_t layer, bool full) {
    const LayerMemory& held = classes[static_cast<std::size_t>(model.layers[layer].layer_class)];
    const Bytes saved = full ? held.saved_if_full : held.saved;
    part.saved += pipeline.splits_backward ? std::min(saved, held.saved_to_weight) : saved;
    part.dense += held.dense;
    part.expert += held.expert;
  };
  const bool shares_ends = pipeline.rule->output_barriers > 0;
  std::size_t layer = 1;
  if (!shares_ends) add(parts.front(), 0, false);
  for (std::size_t i = 0; i < cut.size(); ++i) {
    const int recomputed = recomputed_blocks(recompute, static_cast<int>(i));
    for (int block = 0; block < cut[i]; ++block) add(parts[i], layer++, block < recomputed);
  }
  if (!shares_ends) add(parts.back(), layer, false);
  return parts;
}

}  // namespace

std::optional<MemoryShortfall> MemoryScreen::rough_shortfall_of(const Candidate& candidate,
                                                                const SharedLayers& layers) {
  if (counts_buffers_) return std::nullopt;
  Recompute recompute = candidate.recompute;
  if (recompute == Recompute{.kind = RecomputeKind::kBlocks}) recompute = {RecomputeKind::kFull};
  const Layout& layout = candidate.layout;
  const auto cut = costs_.stage_cut(layers, candidate.pipeline, candidate.recompute);
  const std::vector<PartMemory> parts =
      part_memory(job_.model, layers->memory, *cut, recompute, candidate.pipeline);

  const Placement& placement = *candidate.pipeline.placement;
  const Strategy strategy = strategy_of(candidate, job_.goal, job_.fixed);
  const ModelStateBytes state = model_state_bytes(strategy, job_.cost_model.memory());
  const auto copies = static_cast<std::int64_t>(placement.routes.size());
  const ParallelDegrees& d = layout.degrees;
  const std::int64_t shard = strategy.data_parallelism.shard_ranks;
  const std::int64_t dense_ranks = copies * (shard > 0 ? shard : replica_count(d));
  const std::int64_t expert_ranks =
      copies *
      (shard > 0 ? shard : stage_rank_count(d) / (std::int64_t{d.expert} * d.expert_tensor));
  const std::vector<double> held = held_activations(candidate);

  std::vector<Bytes> peaks(held.size());
  std::vector<std::optional<Bytes>> least(held.size());
  std::vector<int> stages(held.size(), 0);
  for (std::size_t s = 0; s < placement.device_of_stage.size(); ++s) {
    const std::size_t rank = placement.device_of_stage[s].index();
    const PartMemory& part = parts[static_cast<std::size_t>(placement.part_of_stage[s])];
    const std::int64_t all = part.dense + part.expert;
    const std::int64_t share = part.dense / dense_ranks + part.expert / expert_ranks;
    const auto held_with = [&](int zero) { return strategy.zero >= zero ? share : all; };
    peaks[rank] += Bytes(state.weights * held_with(3) + state.gradients * held_with(2));
    if (!strategy.data_parallelism.offload_optimizer)
      peaks[rank] += Bytes(state.optimizer * held_with(1));
    if (!least[rank] || part.saved < *least[rank]) least[rank] = part.saved;
    ++stages[rank];
  }
  for (std::size_t rank = 0; rank < held.size(); ++rank)
    peaks[rank] +=
        Bytes(static_cast<std::int64_t>(held[rank] * stages[rank] / static_cast<double>(copies) *
                                        static_cast<double>(least[rank].value_or(Bytes()).value)));
  return shortfall_in(peaks, [&](std::size_t rank) { return capacity_at(*layers, rank); });
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
  const bool has_whole_passes = !cuts_passes(s) || request.microbatches > 1;
  return least_peaks(lowered, *candidate.pipeline.placement, held_activations(candidate),
                     candidate.pipeline.splits_backward, has_whole_passes);
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
