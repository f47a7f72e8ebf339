// The works of forward and backward passes: of every stage, and of every unit of split passes.
#include "core/lowering/works.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/value_named.hpp"
#include "core/lowering/passes.hpp"
#include "core/plan/placement.hpp"

namespace meshwright {
namespace {

/// The slice of a whole part, without works.
LayerSlice slice_of_part(const LoweringContext& context, int part) {
  const Placement& placement = context.placement;
  const auto& on = placement.device_of_stage;
  for (const std::vector<StageId>& route : placement.routes)
    for (std::size_t i = 0; i < route.size(); ++i) {
      if (placement.part_of_stage[route[i].index()] != part) continue;
      const auto is_here = [&](std::size_t other) {
        return on[route[other].index()] == on[route[i].index()];
      };
      const auto layers = context.layers[static_cast<std::size_t>(part)].size();
      return {.part = part,
              .first_layer = 0,
              .layer_count = static_cast<int>(layers),
              .is_unit = false,
              .is_first = true,
              .is_last = true,
              .previous_is_here = i > 0 && is_here(i - 1),
              .next_is_here = i + 1 < route.size() && is_here(i + 1),
              .works = {}};
    }
  MW_CHECK(false);
}

/// The node type of the pipeline ranks that hold the part; check_plan() ensures that they agree.
std::int32_t node_kind_of(const LoweringContext& context, int part) {
  const std::vector<std::int32_t>& kinds = context.groups.kind_of_position;
  if (kinds.empty()) return -1;
  const auto& parts = context.placement.part_of_stage;
  const auto stage = std::find(parts.begin(), parts.end(), part) - parts.begin();
  return kinds[context.placement.device_of_stage[static_cast<std::size_t>(stage)].index()];
}

/// Appends the works of a slice without recomputation and memory.
StageWorks append_works(LoweringContext& context, const LayerSlice& slice) {
  Work forward, backward, input, weight;
  forward.kind = TaskKind::kForward;
  backward.kind = TaskKind::kBackward;
  input.kind = TaskKind::kBackwardInput;
  weight.kind = TaskKind::kBackwardWeight;
  const std::span<const PlacedLayer> layers = layers_of(context, slice);
  const bool looks_up_shard = context.vocabulary.lookup >= 0 && slice.part > 0;
  if (looks_up_shard) use_part(forward, context.vocabulary.lookup);
  for (const PlacedLayer& layer : layers) use_part(forward, context.held(layer).parts.forward);
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    const LayerParts& parts = context.held(*layer).parts;
    use_part(backward, parts.backward);
    use_part(input, parts.backward_input);
    use_part(weight, parts.backward_weight);
  }
  if (looks_up_shard) use_part(backward, context.vocabulary.lookup_backward);
  std::vector<Work>& works = context.graph().works;
  const WorkId first(works.size());
  const std::int32_t node_kind = node_kind_of(context, slice.part);
  for (Work* work : {&forward, &backward, &input, &weight}) {
    work->node_kind = node_kind;
    works.push_back(std::move(*work));
  }
  return {first, WorkId(first.value + 1), WorkId(first.value + 2), WorkId(first.value + 3)};
}

/// S and T of the part's device. The input and the logits are held from S to T.
void append_output_works(LoweringContext& context, int part, StageWorks& works) {
  const auto& [input, logits] = context.output;
  Work scores, gradient;
  scores.kind = TaskKind::kForward;
  gradient.kind = TaskKind::kBackwardWeight;
  use_part(scores, context.vocabulary.scores);
  use_part(gradient, context.vocabulary.gradient);
  scores.acquired[MemoryClass::kActivations] = input;
  scores.acquired[MemoryClass::kLogits] = logits.values;
  gradient.transient[MemoryClass::kLogits] = logits.gradient;
  if (output_barriers_of(context.strategy) == 1) {
    scores.acquired[MemoryClass::kActivations] += input;
    scores.transient[MemoryClass::kLogits] = logits.gradient;
  } else {
    gradient.transient[MemoryClass::kWorking] = input;
  }
  gradient.released = scores.acquired;
  scores.node_kind = gradient.node_kind = node_kind_of(context, part);
  works.output_scores = append_work(context.graph(), std::move(scores));
  works.output_gradient = append_work(context.graph(), std::move(gradient));
}

void append_unit_works(LoweringContext& context, const LayerSlice& whole) {
  std::vector<ParameterUnit>& units = context.units[static_cast<std::size_t>(whole.part)].units;
  for (ParameterUnit& unit : units) {
    LayerSlice slice = whole;
    slice.is_unit = true;
    slice.first_layer = unit.first_layer;
    slice.layer_count = unit.layer_count;
    slice.is_first = &unit == &units.front();
    slice.is_last = &unit == &units.back();
    slice.previous_is_here = whole.previous_is_here || !slice.is_first;
    slice.next_is_here = whole.next_is_here || !slice.is_last;
    slice.works = unit.works = append_works(context, slice);
    context.slices.push_back(slice);
  }
}

}  // namespace

std::span<const PlacedLayer> layers_of(const LoweringContext& context, const LayerSlice& slice) {
  return {context.layers[static_cast<std::size_t>(slice.part)].data() + slice.first_layer,
          static_cast<std::size_t>(slice.layer_count)};
}

void use_part(Work& work, std::int32_t part) {
  if (!work.parts.empty() && work.parts.back().part == part)
    ++work.parts.back().count;
  else
    work.parts.push_back({part, 1});
}

void compose_works(LoweringContext& context) {
  std::vector<StageWorks> works_of_part;
  for (int part = 0; part < static_cast<int>(context.layers.size()); ++part) {
    LayerSlice slice = slice_of_part(context, part);
    slice.works = append_works(context, slice);
    if (context.vocabulary.scores >= 0) append_output_works(context, part, slice.works);
    works_of_part.push_back(slice.works);
    context.slices.push_back(slice);
    append_unit_works(context, slice);
  }
  for (const int part : context.placement.part_of_stage)
    context.stages.push_back(works_of_part[static_cast<std::size_t>(part)]);
}

WorkId work_of(const StageWorks& works, Pass pass) {
  constexpr std::array kWorkOfPass{&StageWorks::forward,        &StageWorks::backward,
                                   &StageWorks::backward_input, &StageWorks::backward_weight,
                                   &StageWorks::output_scores,  &StageWorks::output_gradient};
  return works.*entry_of(kWorkOfPass, pass);
}

}  // namespace meshwright
