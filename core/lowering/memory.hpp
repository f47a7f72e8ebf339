/// Resident bytes of a rank, and the optimizer.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/memory_amounts.hpp"
#include "core/cluster/cluster.hpp"
#include "core/graph/task_graph.hpp"
#include "core/lowering/lowering_context.hpp"
#include "core/plan/plan.hpp"

namespace meshwright {

/// Number of ranks that the update of a parameter is distributed over: with ZeRO those of the shard
/// group, in all replicas of a bidirectional pipeline.
std::int64_t ranks_sharing_update(const LoweringContext& context, const Strategy& strategy,
                                  bool expert);
/// Number of parameters that a rank of this pipeline rank updates (its shard under ZeRO).
std::int64_t updated_parameters(const LoweringContext& context, const Strategy& strategy,
                                PipelineRankId device);
std::vector<MemoryAmounts> resident_memory(const LoweringContext& context, const Strategy& strategy,
                                           const DeviceModel& device);
/// Device memory outside of tensors: CUDA context and communicators, or DeviceModel's figure.
Bytes reserved_memory(const Strategy& strategy, const DeviceModel& device,
                      const TrainerMemory& memory);
/// Traffic per parameter: fp32 gradient, the moments, master weight, stored weight.
std::int64_t update_bytes(const Strategy& strategy);
/// An update of `parameters` elements. Those of 16-bit and of fp32 weights are different kernels,
/// measured separately.
Work update_work(std::int64_t parameters, std::int64_t traffic, Dtype weights, bool on_host,
                 std::vector<WorkPart>& parts);
/// The update of all parameters, the casts of updated weights (see precision.hpp), and with Muon
/// its matrix products.
Work optimizer_work(const LoweringContext& context, const Strategy& strategy, PipelineRankId device,
                    std::vector<WorkPart>& parts);
/// The update of a parameter server's shard; `before`: bytes per parameter of traffic before it.
Work server_update_work(const Strategy& strategy, std::int64_t share, std::int64_t before,
                        std::vector<WorkPart>& parts);
/// The sum over all workers' gradients of a parameter server's shard.
Work server_sum_work(std::int64_t share, int workers, std::vector<WorkPart>& parts);
/// Bytes of optimizer state per parameter.
Bytes optimizer_state_bytes(const Strategy& strategy);
/// With optimizer state in host memory: the device computes the norm and clears its gradients, and
/// the CPU updates a shard of `parameters` elements.
Work host_optimizer_work(const Strategy& strategy, std::int64_t parameters,
                         std::vector<WorkPart>& parts);

}  // namespace meshwright
