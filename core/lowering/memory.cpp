#include "core/lowering/memory.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "core/lowering/data_groups.hpp"
#include "core/lowering/lower.hpp"
#include "core/lowering/lowering_context.hpp"
#include "core/lowering/muon.hpp"
#include "core/plan/job_groups.hpp"
#include "core/plan/weight_versions.hpp"

namespace meshwright {
namespace {

/// Bytes per parameter of mixed-precision AdamW (Rajbhandari et al., arXiv 1910.02054, section
/// 3.1). With weights and gradients, unsharded: 2 + 4 + 12 = 18 with fp32 gradients, 2 + 2 + 16 =
/// 20 with 16-bit ones, as in the table of Megatron-LM's docs on the distributed optimizer.
constexpr std::int64_t kMasterBytes = 4;  ///< fp32 copy of 16-bit weights

/// Of the first and second moments; only the first with SGD.
std::int64_t moment_bytes(const Strategy& strategy) {
  return moment_count(strategy.optimizer) * kFloat32Bytes;
}

bool weights_are_fp32(Dtype dtype) { return stored_element(dtype).value == kMasterBytes; }

/// FSDP: the shards of the parameters are the master copy.
bool shards_are_masters(const Strategy& strategy, const TrainerMemory& memory) {
  return strategy.zero >= 3 && memory.has_fp32_shards;
}

/// fp32 weights need no master copy; 16-bit gradients need an fp32 copy for the update.
std::int64_t optimizer_bytes(const Strategy& strategy) {
  return moment_bytes(strategy) + (weights_are_fp32(strategy.dtype) ? 0 : kMasterBytes) +
         (gradient_bytes(strategy) < kFloat32Bytes ? kFloat32Bytes : 0);
}

/// Bytes per parameter of gradients: what the trainer usually holds, or less if the plan asks for
/// 16-bit gradients.
std::int64_t held_gradient_bytes(const Strategy& strategy, std::int64_t usual) {
  const std::int64_t asked = gradient_bytes(strategy);
  return asked < kFloat32Bytes ? std::min(asked, usual) : usual;
}

/// Traffic per parameter of widening 16-bit gradients: read them, write fp32 ones.
std::int64_t widening_bytes(const Strategy& strategy) {
  const std::int64_t gradient = gradient_bytes(strategy);
  return gradient < kFloat32Bytes ? gradient + kFloat32Bytes : 0;
}

/// Number of weight versions on a device; the optimizer updates the newest.
int weight_copies(const Strategy& strategy, PipelineRankId device) {
  return updates_without_flush(strategy) ? weight_versions_of(strategy, device).held : 1;
}

/// One per distinct shape of the blocks on a device.
std::int64_t cached_gradient_elements(const LoweringContext& context, PipelineRankId device) {
  std::set<std::pair<std::int64_t, std::int64_t>> shapes;
  for_each_part_on(context, device, [&](std::size_t part) {
    for (const WeightMatrix& m : context.parameters[part].matrices)
      shapes.emplace(m.rows, m.columns);
  });
  std::int64_t elements = 0;
  for (const auto& [rows, columns] : shapes) elements += rows * columns;
  return elements;
}

/// Process groups of a rank with a communicator of their own: one per axis with several ranks, and
/// the whole job.
int communicator_count(const ParallelDegrees& d) {
  int count = d.pipeline > 1 ? 1 : 0;
  for (const ProcessGroup& group : kLayerGroups) count += d.*group.size > 1 ? 1 : 0;
  for (const std::int64_t ranks : {std::int64_t{d.data} * d.context, rank_count(d)})
    count += ranks > 1 ? 1 : 0;
  if (d.expert > 1 && stage_rank_count(d) > std::int64_t{d.expert} * d.expert_tensor) ++count;
  return count;
}

/// Quantized weights of a device that are cached; fully sharded ones are not.
std::int64_t cached_weights(const LoweringContext& context, const Strategy& strategy,
                            PipelineRankId device) {
  std::int64_t count = 0;
  if (strategy.zero < 3)
    for_each_part_on(context, device,
                     [&](std::size_t part) { count += quantized_count(context.parameters[part]); });
  return count;
}

/// Bytes of cached quantized weights, less those of the 16-bit weights that they replace.
Bytes cached_copies(const LoweringContext& context, const Strategy& strategy,
                    PipelineRankId device) {
  const std::int64_t count = cached_weights(context, strategy, device);
  if (count == 0) return {};
  const Quantization format = quantization_of(strategy.dtype, strategy.precision.fp8_recipe);
  const Bytes copies = quantized_bytes(format, count) * std::int64_t{context.quantized_copies};
  return strategy.precision.fp8_parameters ? copies - stored_element(strategy.dtype) * count
                                           : copies;
}

/// Casts of the updated weights to their cached copies. Weights that were gathered in fp8 are only
/// transposed or, along columns, quantized again from fp8.
void append_weight_casts(const LoweringContext& context, const Strategy& strategy,
                         PipelineRankId device, std::vector<Step>& steps) {
  const std::int64_t count = cached_weights(context, strategy, device);
  if (count == 0) return;
  const Quantization format = quantization_of(strategy.dtype, strategy.precision.fp8_recipe);
  const std::int64_t one = quantized_bytes(format, count).value;
  const bool from_fp8 =
      strategy.precision.fp8_parameters && strategy.precision.fp8_recipe != Fp8Recipe::kMxfp8;
  if (from_fp8 && context.quantized_copies == 1) return;
  Kernel kernel;
  kernel.kind = KernelKind::kMemoryBound;
  kernel.phase = Phase::kUpdate;
  kernel.routine = Routine::kCast;
  kernel.dtype = storage_dtype(strategy.dtype);
  kernel.launches = !from_fp8 && format.finds_maximum ? 2 : 1;
  kernel.memory_traffic =
      Bytes(from_fp8 ? 2 * one
                     : kernel.launches * count * stored_element(strategy.dtype).value +
                           context.quantized_copies * one);
  steps.emplace_back(kernel);
}

/// True if neighboring stages are on different devices and exchange messages.
bool sends_messages(const Placement& placement) { return placement.devices > 1; }

}  // namespace

std::int64_t ranks_sharing_update(const LoweringContext& context, const Strategy& strategy,
                                  bool expert) {
  if (strategy.zero == 0) return 1;
  const auto copies = static_cast<std::int64_t>(context.placement.routes.size());
  return data_groups_of(strategy, context.groups, expert).shard.shape.ranks * copies;
}

std::int64_t updated_parameters(const LoweringContext& context, const Strategy& strategy,
                                PipelineRankId device) {
  const std::int64_t dense_ranks = ranks_sharing_update(context, strategy, false);
  const std::int64_t expert_ranks = ranks_sharing_update(context, strategy, true);
  std::int64_t count = 0;
  for_each_part_on(context, device, [&](std::size_t part) {
    const LocalParameters& local = context.parameters[part].local;
    count += divide_up(local.dense, dense_ranks) + divide_up(local.expert, expert_ranks);
  });
  return count;
}

Bytes reserved_memory(const Strategy& strategy, const DeviceModel& device,
                      const TrainerMemory& memory) {
  if (!memory.context) return device.reserved_memory;
  return *memory.context + memory.communicator * communicator_count(strategy.degrees);
}

Bytes fixed_memory(const Strategy& strategy, const DeviceModel& device,
                   const TrainerMemory& memory) {
  return memory.workspace + reserved_memory(strategy, device, memory);
}

std::int64_t quantized_count(const PartParameters& parameters) {
  std::int64_t count = 0;
  for (const ParameterRange& range : parameters.quantized) count += range.count;
  return count;
}

std::int64_t quantized_count(const PartParameters& parameters, const ParameterRange& range) {
  std::int64_t count = 0;
  for (const ParameterRange& quantized : parameters.quantized) {
    if (quantized.expert != range.expert) continue;
    const std::int64_t begin = std::max(quantized.first, range.first);
    const std::int64_t end = std::min(quantized.first + quantized.count, range.first + range.count);
    count += std::max<std::int64_t>(0, end - begin);
  }
  return count;
}

std::int64_t update_bytes(const Strategy& strategy) {
  const Dtype dtype = strategy.dtype;
  const std::int64_t weight =
      weights_are_fp32(dtype) ? 2 * kMasterBytes : 2 * kMasterBytes + stored_element(dtype).value;
  return kFloat32Bytes + 2 * moment_bytes(strategy) + weight;
}

Work update_work(std::int64_t parameters, std::int64_t traffic, Dtype weights, bool on_host,
                 std::vector<WorkPart>& parts) {
  Kernel kernel;
  kernel.kind = KernelKind::kOptimizer;
  kernel.phase = Phase::kUpdate;
  kernel.routine = Routine::kUpdate;
  kernel.dtype = storage_dtype(weights);
  kernel.m = parameters;
  kernel.memory_traffic = Bytes(traffic);
  kernel.on_host = on_host;
  WorkPart part;
  part.name = "optimizer";
  part.steps.emplace_back(kernel);
  parts.push_back(std::move(part));
  Work work;
  work.kind = TaskKind::kOptimizer;
  work.parts.push_back({static_cast<std::int32_t>(parts.size() - 1), 1});
  return work;
}

ModelStateBytes model_state_bytes(const Strategy& strategy, const TrainerMemory& memory) {
  const bool masters = shards_are_masters(strategy, memory);
  return {.weights = masters ? kMasterBytes : stored_element(strategy.dtype).value,
          .gradients = held_gradient_bytes(strategy, gradient_bytes(memory, strategy.dtype)),
          .optimizer = masters ? moment_bytes(strategy) : optimizer_bytes(strategy),
          .unreduced = held_gradient_bytes(strategy, memory.unreduced_gradient_bytes)};
}

std::vector<MemoryAmounts> resident_memory(const LoweringContext& context, const Strategy& strategy,
                                           const DeviceModel& device) {
  const TrainerMemory& memory = context.options.memory;
  const ModelStateBytes state = model_state_bytes(strategy, memory);
  const Bytes element = stored_element(strategy.dtype);
  std::vector<MemoryAmounts> resident(static_cast<std::size_t>(context.placement.devices));
  for (std::size_t d = 0; d < resident.size(); ++d) {
    std::int64_t parameters = 0;
    Bytes largest_message;
    for_each_part_on(context, PipelineRankId(d), [&](std::size_t part) {
      parameters += context.parameters[part].local.dense + context.parameters[part].local.expert;
      if (part + 1 < context.boundary.size())
        largest_message = std::max(largest_message, context.boundary[part]);
      if (part > 0) largest_message = std::max(largest_message, context.boundary[part - 1]);
    });
    MemoryAmounts& amounts = resident[d];
    const std::int64_t share = updated_parameters(context, strategy, PipelineRankId(d));
    amounts[MemoryClass::kWeights] =
        Bytes(state.weights * (strategy.zero >= 3 ? share : parameters) *
              weight_copies(strategy, PipelineRankId(d)));
    amounts[MemoryClass::kGradients] =
        Bytes(state.gradients * (strategy.zero >= 2 ? share : parameters));
    if (memory.weight_gradients == WeightGradientMemory::kCachedByShape)
      amounts[MemoryClass::kGradients] +=
          element * cached_gradient_elements(context, PipelineRankId(d));
    amounts[MemoryClass::kWeights] += cached_copies(context, strategy, PipelineRankId(d));
    if (!strategy.data_parallelism.offload_optimizer)
      amounts[MemoryClass::kOptimizer] = Bytes(state.optimizer * share);
    amounts[MemoryClass::kWorking] = memory.workspace;
    // One buffer each for an activation and a gradient in flight. Our own executor sends from and
    // receives into the tensors themselves.
    if (sends_messages(context.placement) && device.kernels != KernelLibrary::kOwn)
      amounts[MemoryClass::kCommunication] = largest_message * 2;
    amounts[MemoryClass::kReserved] = reserved_memory(strategy, device, memory);
  }
  return resident;
}

/// In addition to AdamW, a step accesses the gradients for the norm (one read), clipping (read and
/// write) of this rank's shard, and zeroing its whole gradient buffer. AdamW reads the gradient,
/// reads and writes master weights and moments, and writes the stored weight. Unsharded 16-bit
/// weights: 12 + 4 + 4 + 16 + 8 + 2 = 46 bytes per parameter; with 16-bit gradients, which are
/// widened first (2 + 4) and are half as large to clear, 50. If the previous weight version must be
/// preserved, fp32 weights are copied first (read and write); 16-bit weights are derived from the
/// master weights anyway.
Work optimizer_work(const LoweringContext& context, const Strategy& strategy, PipelineRankId device,
                    std::vector<WorkPart>& parts) {
  const bool copies = weights_are_fp32(strategy.dtype) && weight_copies(strategy, device) > 1;
  const std::int64_t gradient = gradient_bytes(strategy);
  const std::int64_t per_parameter = widening_bytes(strategy) + kNormAndClipBytes +
                                     update_bytes(strategy) +
                                     (copies ? 2 * stored_element(strategy.dtype).value : 0);
  std::int64_t held = 0;
  for_each_part_on(context, device, [&](std::size_t part) {
    held += context.parameters[part].local.dense + context.parameters[part].local.expert;
  });
  const std::int64_t share = updated_parameters(context, strategy, device);
  if (strategy.zero >= 2) held = share;
  const std::int64_t updating =
      strategy.data_parallelism.offload_optimizer ? share * gradient : share * per_parameter;
  Work work =
      update_work(share, updating + held * gradient, strategy.dtype, /*on_host=*/false, parts);
  append_weight_casts(context, strategy, device, parts.back().steps);
  if (strategy.optimizer == OptimizerKind::kMuon)
    append_orthogonalization(context, device, work, parts);
  return work;
}

Bytes optimizer_state_bytes(const Strategy& strategy) { return Bytes(optimizer_bytes(strategy)); }

Work server_update_work(const Strategy& strategy, std::int64_t share, std::int64_t before,
                        std::vector<WorkPart>& parts) {
  return update_work(share, share * (before + update_bytes(strategy)), strategy.dtype, false,
                     parts);
}

Work server_sum_work(std::int64_t share, int workers, std::vector<WorkPart>& parts) {
  return update_work(share, share * kFloat32Bytes * (workers + 1), Dtype::kFp32, false, parts);
}

Work host_optimizer_work(const Strategy& strategy, std::int64_t parameters,
                         std::vector<WorkPart>& parts) {
  return update_work(parameters, parameters * update_bytes(strategy), strategy.dtype, true, parts);
}

}  // namespace meshwright
