// Parameters of every model part on one rank.
#include <algorithm>

#include "core/lowering/passes.hpp"
#include "core/plan/placement.hpp"

namespace meshwright {
namespace {

/// The matrices of quantized GEMMs in a part.
std::vector<ParameterRange> quantized_ranges(const LoweringContext& context, int part) {
  std::vector<ParameterRange> ranges;
  LocalParameters next;
  for (const PlacedLayer& layer : context.layers[static_cast<std::size_t>(part)])
    for (const LocalParameter& parameter : context.held(layer).parameter_list) {
      std::int64_t& first = parameter.expert ? next.expert : next.dense;
      if (parameter.quantized) ranges.push_back({part, parameter.expert, first, parameter.count});
      first += parameter.count;
    }
  return ranges;
}

/// Elements of a tied head's copy of the embedding table: the embedding is on another device.
std::int64_t tied_copy(const LoweringContext& context, int part) {
  const Placement& placement = context.placement;
  const std::vector<StageId>& route = placement.routes.front();
  const auto device = [&](StageId stage) { return placement.device_of_stage[stage.index()]; };
  const bool is_last = part + 1 == part_count(placement);
  const bool apart = part > 0 && is_last && device(route.front()) != device(route.back());
  const bool replicated = placement.routes.size() > 1;
  if (!apart || replicated || context.vocabulary.scores >= 0) return 0;
  return local_tied_parameters(context.model, shard_shape_of(context.strategy));
}

PartParameters parameters_of(const LoweringContext& context, int part) {
  PartParameters made;
  for (const PlacedLayer& layer : context.layers[static_cast<std::size_t>(part)]) {
    const LayerHoldings& held = context.held(layer);
    made.local += held.parameters;
    made.partial += held.partial;
    made.gradients_with_inputs += held.gradients_with_inputs;
    if (context.model.layers[held.first.index()].kind != LayerKind::kBlock) continue;
    for (const WeightMatrix& m : held.matrices)
      if (std::find(made.matrices.begin(), made.matrices.end(), m) == made.matrices.end())
        made.matrices.push_back(m);
  }
  made.quantized = quantized_ranges(context, part);
  made.tied_copy = tied_copy(context, part);
  made.local.dense += context.vocabulary_parameters + made.tied_copy;
  return made;
}

}  // namespace

void list_parameters(LoweringContext& context) {
  for (std::size_t part = 0; part < context.layers.size(); ++part)
    context.parameters.push_back(parameters_of(context, static_cast<int>(part)));
}

}  // namespace meshwright
