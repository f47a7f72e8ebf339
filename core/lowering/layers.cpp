#include "core/lowering/layers.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/lowering/output_layer.hpp"
#include "core/operators/operators.hpp"
#include "core/operators/recompute_operators.hpp"

namespace meshwright {
namespace {

bool repeats_whole_layers(const Strategy& strategy) {
  return strategy.recompute.kind == RecomputeKind::kFull ||
         strategy.recompute.kind == RecomputeKind::kBlocks;
}
bool repeats_operators(const Strategy& strategy) {
  return strategy.recompute.kind == RecomputeKind::kModules ||
         strategy.recompute.kind == RecomputeKind::kTorchSelective;
}

}  // namespace

LayerPrograms::LayerPrograms(const LayerCall& call, LayerId layer)
    : shard_(call.shard),
      strategy_(call.strategy),
      context_(call.model, layer, shard_, call.groups),
      end_(context_.layer.operator_count) {
  const LayerKind kind = context_.layer.kind;
  const bool is_block = kind == LayerKind::kBlock;
  context_.overlaps_products =
      is_block && call.strategy.model_parallelism.tensor_overlap && shard_.sequence_parallel;
  context_.overlaps_gradients =
      context_.overlaps_products || (is_block && call.memory.overlaps_gradient_reduction);
  context_.context_axis = call.context_axis;
  context_.exchanges_heads_again = repeats_attention(call.strategy);
  if (kind == LayerKind::kHead && output_barriers_of(call.strategy) > 0)
    restrict_to(0, end_ - kOutputOperators);
  if (is_block && repeats_operators(call.strategy))
    repeated_fractions_ = recomputed_fractions(call.model, layer, call.strategy.recompute);
}

void LayerPrograms::restrict_to(int begin, int end) {
  begin_ = begin;
  end_ = end;
}

template <class Visit>
void LayerPrograms::for_each(bool reverse, const Sink& sink, const Visit& visit) const {
  const int count = context_.layer.operator_count;
  OperatorProgram program(context_, sink.steps, sink.buffers);
  for (int n = 0; n < count; ++n) {
    const int i = reverse ? count - 1 - n : n;
    if (i >= begin_ && i < end_) visit(program, i);
    if (sink.after_operator) sink.after_operator(OperatorId(context_.layer.first_operator + i));
  }
}

void LayerPrograms::forward(const Sink& sink) const {
  for_each(/*reverse=*/false, sink, [](OperatorProgram& program, int i) {
    program.begin(i, Phase::kForward);
    describe(program);
  });
}

void LayerPrograms::backward(bool inputs, bool weights, const Sink& sink) const {
  for_each(/*reverse=*/true, sink, [&](OperatorProgram& program, int i) {
    const bool both = inputs && weights;
    for (const Phase phase : {Phase::kBackwardInput, Phase::kBackwardWeight}) {
      if (!(phase == Phase::kBackwardInput ? inputs : weights)) continue;
      program.begin(i, phase, both);
      describe(program);
    }
  });
}

bool LayerPrograms::has_recomputation() const {
  if (context_.layer.kind != LayerKind::kBlock) return false;
  return repeats_whole_layers(strategy_) || repeats_attention(strategy_) ||
         std::ranges::any_of(repeated_fractions_, [](double f) { return f > 0; });
}

void LayerPrograms::recompute(const Sink& sink) const {
  if (repeats_attention(strategy_)) return repeat_attention(sink);
  repeats_operators(strategy_) ? repeat(sink) : forward(sink);
}

void LayerPrograms::repeat_attention(const Sink& sink) const {
  for_each(/*reverse=*/false, sink, [&](OperatorProgram& program, int i) {
    program.begin(i, Phase::kForward);
    if (std::holds_alternative<Attention>(program.op().shape)) describe(program);
  });
}

/// Repeats operators, or some of their columns; see recomputed_fractions().
void LayerPrograms::repeat(const Sink& sink) const {
  for_each(/*reverse=*/false, sink, [&](OperatorProgram& program, int i) {
    const double fraction = repeated_fractions_[static_cast<std::size_t>(i)];
    if (fraction == 0) return;
    const std::size_t begin = sink.steps.size();
    program.begin(i, Phase::kForward);
    describe(program);
    if (fraction < 1) shorten_products(fraction, begin, sink.steps);
  });
}

/// Only some columns of y[m, n] = x[m, k] W[k, n].
void LayerPrograms::shorten_products(double fraction, std::size_t begin,
                                     std::vector<Step>& steps) const {
  for (std::size_t s = begin; s < steps.size(); ++s) {
    auto* product = std::get_if<Kernel>(&steps[s]);
    if (product == nullptr || product->kind != KernelKind::kGemm) continue;
    product->n = std::llround(static_cast<double>(product->n) * fraction);
    product->flops = product->flops * fraction;
    product->memory_traffic =
        stored_element(shard_.dtype) *
        (product->m * product->k + product->k * product->n + product->m * product->n);
  }
}

// ---- parts ----------------------------------------------------------------------------------

namespace {

std::string part_name(const Layer& layer, std::string_view pass) {
  constexpr std::array<std::string_view, 3> kKinds{"embedding", "block", "head"};
  std::string name(kKinds[static_cast<std::size_t>(layer.kind)]);
  // Class 0 is the embedding; block classes start at 1, and a single block class has no number.
  if (layer.kind == LayerKind::kBlock && layer.layer_class > 1)
    name += std::to_string(layer.layer_class);
  name += '.';
  name += pass;
  return name;
}

std::int32_t append_part(std::vector<WorkPart>& parts, WorkPart part) {
  parts.push_back(std::move(part));
  return static_cast<std::int32_t>(parts.size() - 1);
}

}  // namespace

LayerParts append_layer_parts(const LayerCall& call, LayerId layer, std::vector<WorkPart>& parts,
                              WantedPasses wanted) {
  const LayerPrograms programs(call, layer);
  const Layer& l = call.model.layers[layer.index()];
  const auto part = [&](std::string_view pass, auto&& fill) {
    WorkPart made;
    made.name = part_name(l, pass);
    made.steps.reserve(4 * static_cast<std::size_t>(l.operator_count));
    fill(LayerPrograms::Sink{.steps = made.steps});
    return append_part(parts, std::move(made));
  };
  LayerParts made{
      .forward = -1, .backward = -1, .backward_input = -1, .backward_weight = -1, .recompute = -1};
  if (wanted != WantedPasses::kRecomputationOnly) {
    made.forward = part("F", [&](const auto& sink) { programs.forward(sink); });
    made.backward = part("B", [&](const auto& sink) { programs.backward(true, true, sink); });
    made.backward_input =
        part("I", [&](const auto& sink) { programs.backward(true, false, sink); });
  }
  if (wanted == WantedPasses::kAll)
    made.backward_weight =
        part("W", [&](const auto& sink) { programs.backward(false, true, sink); });
  if (!programs.has_recomputation()) return made;
  made.recompute = part("recompute", [&](const auto& sink) { programs.recompute(sink); });
  parts[static_cast<std::size_t>(made.recompute)].recompute = true;
  return made;
}

/// With one barrier, S also computes the input gradient (Yeung et al., algorithm 2).
VocabularyParts append_vocabulary_parts(const ModelGraph& model, const Strategy& strategy,
                                        const JobGroups& groups, std::vector<WorkPart>& parts) {
  const ShardShape shard = shard_shape_of(vocabulary_strategy(strategy));
  const auto part = [&](std::string_view name, auto&& fill) {
    WorkPart made;
    made.name = name;
    fill(made.steps);
    return append_part(parts, std::move(made));
  };
  const auto lookup = [&](Phase phase) {
    return [&, phase](std::vector<Step>& steps) {
      const OperatorId table(model.layers.front().first_operator);
      for (const Kernel& kernel : kernels_of(model, table, shard, phase))
        steps.emplace_back(kernel);
    };
  };
  VocabularyParts made;
  made.lookup = part("embedding-shard.F", lookup(Phase::kForward));
  made.lookup_backward = part("embedding-shard.B", lookup(Phase::kBackwardWeight));

  const LayerId head(model.layers.size() - 1);
  const int count = model.layers[head.index()].operator_count;
  const TrainerMemory memory;
  LayerPrograms output({model, strategy, shard, groups, memory}, head);
  output.restrict_to(count - kOutputOperators, count);
  const bool gradient_in_scores = output_barriers_of(strategy) == 1;
  made.scores = part("head.S", [&](std::vector<Step>& steps) {
    output.forward({.steps = steps});
    if (gradient_in_scores) output.backward(true, false, {.steps = steps});
  });
  made.gradient = part("head.T", [&](std::vector<Step>& steps) {
    output.backward(!gradient_in_scores, true, {.steps = steps});
  });
  return made;
}

}  // namespace meshwright
