#include "planner/search/layer_times.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

/// The passes of one layer of a class, with a part of `parts` each.
struct ClassTimes {
  PassTimes plain;
  Ticks recompute;
};

std::vector<ClassTimes> class_times(std::span<const LayerParts> classes,
                                    const std::vector<WorkPart>& parts,
                                    const CostModel& cost_model) {
  std::vector<Work> works;
  const auto add = [&](std::int32_t part) {
    Work& work = works.emplace_back();
    if (part >= 0) work.parts = {{.part = part, .count = 1}};
  };
  for (const LayerParts& of : classes)
    for (const std::int32_t part : {of.forward, of.backward, of.backward_input, of.recompute})
      add(part);
  const std::vector<WorkPrice> prices = price_works(parts, works, cost_model);
  std::vector<ClassTimes> times;
  for (std::size_t i = 0; i < prices.size(); i += 4)
    times.push_back({.plain = {.forward = prices[i].duration,
                               .backward = prices[i + 1].duration,
                               .backward_input = prices[i + 2].duration},
                     .recompute = prices[i + 3].duration});
  return times;
}

/// The times of layers of a model.
class TimesOfLayers {
 public:
  TimesOfLayers(const LoweredLayers& lowered, const Strategy& strategy, const ModelGraph& model,
                const CostModel& cost_model)
      : strategy_(strategy),
        model_(model),
        classes_(class_times(lowered.classes, lowered.parts, cost_model)),
        wide_(class_times(lowered.wide_classes, lowered.parts, cost_model)) {}

  const ClassTimes& of(std::size_t layer) const {
    const bool is_wide = is_wide_block(model_, LayerId(layer), strategy_);
    return (is_wide ? wide_ : classes_)[static_cast<std::size_t>(model_.layers[layer].layer_class)];
  }

 private:
  const Strategy& strategy_;
  const ModelGraph& model_;
  std::vector<ClassTimes> classes_, wide_;
};

PassTimes with_recomputation(PassTimes passes, Ticks recompute) {
  passes.backward += recompute;
  passes.backward_input += recompute;
  return passes;
}

/// Layers that recompute operators, from their costs without it.
LayerCosts recomputing(LayerCosts costs, const Strategy& strategy, const ModelGraph& model,
                       const Cluster& cluster, const CostModel& cost_model) {
  const LoweredLayers lowered =
      lower_layers(strategy, model, cluster, cost_model.memory(), WantedPasses::kRecomputationOnly);
  const TimesOfLayers times(lowered, strategy, model, cost_model);
  std::size_t layer = 1;
  for (LayerRun& run : costs.passes.blocks) {
    run.plain = run.recomputed = with_recomputation(run.plain, times.of(layer).recompute);
    layer += static_cast<std::size_t>(run.count);
  }
  for (std::size_t i = 0; i < costs.memory.size(); ++i) {
    const LocalParameters parameters = costs.memory[i].parameters;
    costs.memory[i] = lowered.memory[i];
    costs.memory[i].parameters = parameters;
  }
  return costs;
}

}  // namespace

LayerCosts layer_costs(const Strategy& strategy, const ModelGraph& model, const Cluster& cluster,
                       const CostModel& cost_model, const LayerCosts* without_recomputation) {
  if (without_recomputation != nullptr && recomputes_operators(strategy.recompute.kind) &&
      !repeats_attention(strategy))
    return recomputing(*without_recomputation, strategy, model, cluster, cost_model);
  LoweredLayers lowered =
      lower_layers(strategy, model, cluster, cost_model.memory(), WantedPasses::kWithoutWeights);
  const TimesOfLayers times(lowered, strategy, model, cost_model);
  const bool selective = recomputes_operators(strategy.recompute.kind);
  const auto run_of = [&](std::size_t layer) {
    const ClassTimes& of = times.of(layer);
    const PassTimes recomputed = with_recomputation(of.plain, of.recompute);
    return LayerRun{
        .count = 1, .plain = selective ? recomputed : of.plain, .recomputed = recomputed};
  };
  LayerCosts costs{.passes = {}, .memory = std::move(lowered.memory)};
  LayerPasses& passes = costs.passes;
  const std::size_t count = model.layers.size();
  MW_CHECK(count >= 2);
  passes.embedding = run_of(0).plain;
  passes.head = run_of(count - 1).plain;
  for (std::size_t layer = 1; layer + 1 < count; ++layer) {
    if (layer > 1 && &times.of(layer) == &times.of(layer - 1))
      ++passes.blocks.back().count;
    else
      passes.blocks.push_back(run_of(layer));
  }
  return costs;
}

PassTimes& PassTimes::operator+=(const PassTimes& more) {
  forward += more.forward;
  backward += more.backward;
  backward_input += more.backward_input;
  return *this;
}

PassTimes operator*(const PassTimes& once, std::int64_t count) {
  return {once.forward * count, once.backward * count, once.backward_input * count};
}

LayerPasses without_ends(LayerPasses layers) {
  layers.embedding = layers.head = {};
  return layers;
}

namespace {

Ticks both(const PassTimes& layer) { return layer.forward + layer.backward; }
const PassTimes& times_of(const LayerRun& run, bool recomputed) {
  return recomputed ? run.recomputed : run.plain;
}

}  // namespace

LayerTimes layer_times(const LayerPasses& layers, bool recomputed) {
  LayerTimes times{.embedding = both(layers.embedding), .head = both(layers.head), .blocks = {}};
  for (const LayerRun& run : layers.blocks)
    times.blocks.insert(times.blocks.end(), static_cast<std::size_t>(run.count),
                        both(times_of(run, recomputed)));
  return times;
}

Ticks total_time(const LayerPasses& layers, bool recomputed) {
  Ticks total = both(layers.embedding) + both(layers.head);
  for (const LayerRun& run : layers.blocks)
    total += both(times_of(run, recomputed)) * std::int64_t{run.count};
  return total;
}

std::vector<PassTimes> stage_passes(const LayerPasses& layers,
                                    std::span<const int> blocks_per_stage,
                                    const Recompute& recompute) {
  std::vector<PassTimes> stages(blocks_per_stage.size());
  stages.front() += layers.embedding;
  stages.back() += layers.head;
  auto run = layers.blocks.begin();
  int left_in_run = run == layers.blocks.end() ? 0 : run->count;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    int recomputed = recomputed_blocks(recompute, static_cast<int>(stage));
    for (int left = blocks_per_stage[stage]; left > 0;) {
      if (left_in_run == 0) left_in_run = (++run)->count;
      const bool again = recomputed > 0;
      const int count = std::min({left, left_in_run, again ? recomputed : left});
      stages[stage] += times_of(*run, again) * count;
      left -= count;
      left_in_run -= count;
      recomputed -= again ? count : 0;
    }
  }
  return stages;
}

}  // namespace meshwright
