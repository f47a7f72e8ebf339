#include "core/lowering/lower.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "core/base/check.hpp"
#include "core/lowering/lowering_context.hpp"
#include "core/lowering/lowering_pass.hpp"
#include "core/lowering/passes.hpp"
#include "core/operators/local_parameters.hpp"

namespace meshwright {
namespace {

/// lower(), from top to bottom. A new axis or mode is one line here and one new file.
constexpr LoweringPass kPasses[] = {
    {"stages", cut_stages},                 // which layers are on which pipeline rank
    {"layers", describe_layers},            // kernels and collectives of every layer class
    {"output layer", shard_output_layer},   // over the pipeline ranks
    {"parameters", list_parameters},        // of every model part on one rank
    {"units", cut_units},                   // layers that are gathered or reduced together
    {"works", compose_works},               // forward and backward passes of stages and units
    {"recompute", add_recomputation},       // forward work that backward passes repeat
    {"programs", describe_programs},        // passes step by step, with their buffers
    {"activations", estimate_activations},  // memory that passes acquire, release and use
    {"model state", count_model_state},     // weights, gradients, optimizer state of a rank
    {"schedule", order_microbatches},       // the order of passes on every pipeline rank
    {"split gradients", count_unsharded_gradients},  // of split backward passes under ZeRO 2 and 3
    {"ranks", add_representatives},                  // one per pipeline rank
    {"pipeline", append_pipeline},                   // passes, messages, collectives between passes
    {"one process", run_in_one_process},             // torch.nn.DataParallel
    {"parameter servers", add_parameter_servers},
    {"gradients", reduce_gradients},  // at the end of a step
    {"optimizer", update_parameters},
    {"gathers", gather_parameters},  // of updated parameters (ZeRO 1, 2)
    {"batch shares", share_batch},   // if they are unequal
    {"all ranks", unfold_ranks},
};
constexpr std::string_view kLastOfStages = "model state";

}  // namespace

std::span<const LoweringPass> lowering_passes() { return kPasses; }

std::span<const LoweringPass> lowering_passes_until(std::string_view last) {
  const auto found = std::find_if(std::begin(kPasses), std::end(kPasses),
                                  [&](const LoweringPass& pass) { return pass.name == last; });
  MW_CHECK(found != std::end(kPasses));
  return {std::begin(kPasses), found + 1};
}

TaskGraph lower(const Plan& plan, const ModelGraph& model, const Cluster& cluster,
                const LoweringOptions& options) {
  if (auto found = check_plan(plan, model, cluster); !found.empty())
    throw InputError(std::move(found));
  LoweringContext context(plan, model, cluster, options);
  run_passes(lowering_passes(), context);
  return std::move(context.graph());
}

LoweredStages lower_stages(const Plan& plan, const ModelGraph& model, const Cluster& cluster,
                           const TrainerMemory& memory) {
  LoweringOptions options;
  options.memory = memory;
  LoweringContext context(plan, model, cluster, options);
  run_passes(lowering_passes_until(kLastOfStages), context);
  return {.parts = std::move(context.graph().parts),
          .works = std::move(context.graph().works),
          .programs = std::move(context.graph().programs),
          .stages = std::move(context.stages),
          .resident = std::move(context.resident)};
}

namespace {

/// Of a class with blocks in 16 bits the smaller figures.
LayerMemory smaller(const LayerMemory& a, const LayerMemory& b) {
  return {.saved = std::min(a.saved, b.saved),
          .saved_if_full = std::min(a.saved_if_full, b.saved_if_full),
          .saved_to_weight = std::min(a.saved_to_weight, b.saved_to_weight),
          .in_forward = std::min(a.in_forward, b.in_forward),
          .in_backward = std::min(a.in_backward, b.in_backward),
          .in_backward_if_full = std::min(a.in_backward_if_full, b.in_backward_if_full),
          .parameters = a.parameters};
}

LayerMemory memory_of(const LayerCall& call, LayerId layer) {
  const LayerActivations held = layer_activations(call, layer);
  return {.saved = held.kept,
          .saved_if_full = held.kept_if_full,
          .saved_to_weight = held.needs.inputs + held.needs.output_gradients,
          .in_forward = held.working_forward() + held.context.forward,
          .in_backward = held.working_backward(held.kept) + held.context.backward,
          .in_backward_if_full = held.working_backward(held.kept_if_full) + held.context.backward,
          .parameters = {}};
}

}  // namespace

LoweredLayers lower_layers(const Strategy& strategy, const ModelGraph& model,
                           const Cluster& cluster, const TrainerMemory& memory,
                           WantedPasses wanted) {
  Plan plan{strategy, {}};  // layers do not depend on the stages
  if (!recomputes_operators(strategy.recompute.kind))
    plan.strategy.recompute = {.kind = RecomputeKind::kFull};
  LoweringOptions options;
  options.memory = memory;
  LoweringContext context(plan, model, cluster, options);
  context.groups = job_groups_of(plan.strategy, cluster);
  LoweredLayers lowered;
  lowered.parts.reserve(16);
  const std::vector<LayerId> layers = first_of_classes(model);
  const auto describe = [&](bool is_wide, std::vector<LayerParts>& classes) {
    LayerVariant variant{.strategy = plan.strategy, .is_wide = is_wide};
    shard_layers(context, variant);
    const LayerCall call = context.call(variant);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      classes.push_back(append_layer_parts(call, layers[i], lowered.parts, wanted));
      LayerMemory held = memory_of(call, layers[i]);
      if (i < lowered.memory.size()) {
        lowered.memory[i] = smaller(lowered.memory[i], held);
        continue;
      }
      if (wanted != WantedPasses::kRecomputationOnly)
        held.parameters = local_parameters(model, layers[i], variant.shard);
      lowered.memory.push_back(held);
    }
  };
  describe(/*is_wide=*/false, lowered.classes);
  if (is_quantized(strategy.dtype) && strategy.precision.wide_blocks > 0)
    describe(/*is_wide=*/true, lowered.wide_classes);
  return lowered;
}

std::vector<PassReport> report_lowering(const Plan& plan, const ModelGraph& model,
                                        const Cluster& cluster, const LoweringOptions& options) {
  if (auto found = check_plan(plan, model, cluster); !found.empty())
    throw InputError(std::move(found));
  LoweringContext context(plan, model, cluster, options);
  std::vector<PassReport> reports;
  run_passes(lowering_passes(), context, &reports);
  return reports;
}

}  // namespace meshwright
