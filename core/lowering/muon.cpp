#include "core/lowering/muon.hpp"

#include <cstdint>
#include <map>
#include <string>

#include <fmt/format.h>

#include "core/lowering/lowering_context.hpp"
#include "core/lowering/memory.hpp"
#include "core/operators/muon.hpp"

namespace meshwright {
namespace {

/// Matrices of one shape, which are updated alike.
struct Matrices {
  std::int64_t rows = 0, columns = 0;
  bool expert = false;
  bool sharded = false;  ///< over tensor ranks; those of experts, over expert-tensor ranks
  friend auto operator<=>(const Matrices&, const Matrices&) = default;
};

/// Their numbers on a device, before ZeRO distributes them.
std::map<Matrices, std::int64_t> matrices_on(const LoweringContext& context,
                                             PipelineRankId device) {
  const ModelGraph& model = context.model;
  std::map<Matrices, std::int64_t> counts;
  const auto add = [&](const Operator& op, TensorId weight) {
    const auto* experts = std::get_if<ExpertLinear>(&op.shape);
    const ParameterTensor& parameter = parameter_of(model, weight);
    const ParallelDegrees& degrees = context.strategy.degrees;
    Matrices matrices;
    matrices.expert = experts != nullptr;
    matrices.rows = matrices.expert ? experts->in : std::get<Linear>(op.shape).in;
    matrices.sharded = parameter.cut != ParameterCut::kReplicated &&
                       (matrices.expert ? degrees.expert_tensor : degrees.tensor) > 1;
    const std::int64_t each = matrices.expert ? divide_up(experts->experts, degrees.expert) : 1;
    for (const std::int64_t columns : orthogonalized_columns(model, op)) {
      matrices.columns = columns;
      counts[matrices] += each;
    }
  };
  for_each_part_on(context, device, [&](std::size_t part) {
    for (const PlacedLayer& layer : context.layers[part])
      for (const Operator& op : operators_of(model, layer.layer))
        if (const auto weight =
                orthogonalized_parameter(op, model.layers[layer.layer.index()].kind))
          add(op, *weight);
  });
  return counts;
}

void append_part(std::string name, std::vector<Step> steps, std::int64_t count, Work& work,
                 std::vector<WorkPart>& parts) {
  work.parts.push_back({static_cast<std::int32_t>(parts.size()), static_cast<std::int32_t>(count)});
  parts.push_back({.name = std::move(name), .steps = std::move(steps)});
}

}  // namespace

void append_orthogonalization(const LoweringContext& context, PipelineRankId device, Work& work,
                              std::vector<WorkPart>& parts) {
  const bool is_own = context.device().kernels == KernelLibrary::kOwn;
  const Dtype dtype = is_own ? Dtype::kFp32 : storage_dtype(context.strategy.dtype);
  for (const auto& [matrices, held] : matrices_on(context, device)) {
    const std::int64_t count =
        divide_up(held, ranks_sharing_update(context, context.strategy, matrices.expert));
    const std::int64_t bytes = matrices.rows * matrices.columns * bytes_per_element(dtype);
    std::vector<Step> preparation;
    if (matrices.sharded) {
      Collective gather;
      gather.kind = CollectiveKind::kAllGather;
      gather.axis = matrices.expert ? Axis::kExpert : Axis::kTensor;
      gather.bytes = Bytes(bytes);
      gather.group = matrices.expert ? context.groups.expert_tensor : context.groups.tensor;
      gather.phase = Phase::kUpdate;
      preparation.emplace_back(gather);
    }
    Kernel scaling;
    scaling.phase = Phase::kUpdate;
    scaling.routine = Routine::kResidual;
    scaling.dtype = dtype;
    scaling.launches = 2;
    scaling.memory_traffic = Bytes(3 * bytes);  // read for the norm; read and written
    preparation.emplace_back(scaling);
    const std::vector<Kernel> iteration =
        newton_schulz_kernels(matrices.rows, matrices.columns, dtype);
    const std::string shape = fmt::format("{} x {}", matrices.rows, matrices.columns);
    append_part("muon " + shape, std::move(preparation), count, work, parts);
    append_part("newton-schulz " + shape, {iteration.begin(), iteration.end()},
                kNewtonSchulzSteps * count, work, parts);
  }
}

}  // namespace meshwright
