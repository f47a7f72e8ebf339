/// Lowering of stages: their works and parameters, whatever the schedule.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/dtype.hpp"
#include "core/base/kernel.hpp"
#include "core/cluster/cluster.hpp"
#include "core/graph/activation_buffers.hpp"
#include "core/lowering/lower.hpp"
#include "core/lowering/units.hpp"
#include "core/model/model_graph.hpp"
#include "core/operators/operator_work.hpp"
#include "core/plan/job_groups.hpp"
#include "core/plan/plan.hpp"
#include "core/schedule/schedule.hpp"
#include "core/trainer/trainer_memory.hpp"

namespace meshwright {

/// Parameters of one model part on one rank. A tied head on another device than its embedding holds
/// a copy of the table, which is included in `dense` and given by `tied_copy`.
struct PartParameters {
  LocalParameters local;
  std::int64_t tied_copy = 0;
  PartialGradients partial;
  std::int64_t gradients_with_inputs = 0;  ///< elements; see has_gradient_with_inputs()
  std::vector<WeightMatrix> matrices;      ///< of its blocks, each shape once
  std::vector<ParameterRange> quantized;   ///< the matrices of quantized GEMMs
};
/// The quantized parameters of a part; one range: those of them inside it.
std::int64_t quantized_count(const PartParameters& parameters);
std::int64_t quantized_count(const PartParameters& parameters, const ParameterRange& range);

/// Everything that is independent of the micro-batch count and the schedule.
struct StagesPass {
  Placement placement;
  JobGroups groups;
  LoweredStages lowered;
  std::vector<PartParameters> parameters;  ///< by part
  std::vector<PartUnits> units;            ///< by part
  std::vector<Bytes> boundary;             ///< by part: message to the next part, per rank
  Bytes output_input;                      ///< sharded output layer: its input, per rank
  std::vector<SliceMemory> memory;         ///< by part; empty unless memory is counted by buffer
  int message_slices = 1;                  ///< of a message; each tensor rank sends one
  TrainerMemory trainer_memory;
  int quantized_copies = 0;  ///< of cached weights, if GEMMs are quantized
};
/// True if any pass is split into units because gradients or parameters are communicated during it.
bool has_units(const Strategy& strategy, const StagesPass& pass);

StagesPass lower_stages_pass(const Plan& plan, const ModelGraph& model, const Cluster& cluster,
                             const TrainerMemory& memory = {});

/// Bytes of one gradient element: accumulated, communicated and reduced.
inline std::int64_t gradient_bytes(const Strategy& strategy) {
  return bytes_per_element(strategy.precision.gradients);
}
/// Traffic per parameter before an update: gradient norm (one read) and clipping (read and write),
/// in fp32.
inline constexpr std::int64_t kNormAndClipBytes = 3 * kFloat32Bytes;

}  // namespace meshwright
