#include "planner/search/layer_times.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

struct ClassPasses {
  Ticks forward, backward, backward_input, recompute;
};

/// Sums the work parts of all stages by layer class, then divides by the number of layers of the
/// class; blocks that stay in 16 bits are a class of their own. The parts of a stage are in layer
/// order, one per layer (reversed for backward); parts that recompute precede the backward part of
/// their layer.
class ClassTimes {
 public:
  ClassTimes(const ModelGraph& model, const Plan& plan, const LoweredStages& lowered,
             const CostModel& cost_model)
      : model_(model),
        strategy_(plan.strategy),
        lowered_(lowered),
        passes_(2 * static_cast<std::size_t>(layer_class_count(model))),
        layers_(passes_.size(), 0) {
    for (std::size_t i = 0; i < model.layers.size(); ++i) ++layers_[class_of(i)];
    std::size_t first = 0;
    for (std::size_t s = 0; s < lowered.stages.size(); ++s) {
      const bool is_last = s + 1 == lowered.stages.size();
      const std::size_t count = static_cast<std::size_t>(plan.blocks_per_stage[s]) +
                                (s == 0 ? 1u : 0u) + (is_last ? 1u : 0u);
      const StageWorks& works = lowered.stages[s];
      walk(works.forward, first, +1, &ClassPasses::forward);
      walk(works.backward, first + count - 1, -1, &ClassPasses::backward);
      walk(works.backward_input, first + count - 1, -1, &ClassPasses::backward_input);
      first += count;
    }
    MW_CHECK(first == model.layers.size());
    price(cost_model);
  }

  ClassPasses of(std::size_t layer) const {
    const std::size_t c = class_of(layer);
    const auto share = [&](Ticks sum) {
      MW_CHECK(sum.value % layers_[c] == 0);
      return sum / layers_[c];
    };
    const ClassPasses& sum = passes_[c];
    return {share(sum.forward), share(sum.backward), share(sum.backward_input),
            share(sum.recompute)};
  }

 private:
  std::size_t class_of(std::size_t layer) const {
    const bool wide = is_wide_block(model_, LayerId(layer), strategy_);
    return 2 * static_cast<std::size_t>(model_.layers[layer].layer_class) + (wide ? 1 : 0);
  }

  /// A work part with its layer class, its pass, and its number of uses over all stages.
  struct Use {
    std::int32_t part;
    std::size_t layer_class;
    Ticks ClassPasses::*pass;
    std::int64_t times;
  };

  void walk(WorkId work, std::size_t layer, int direction, Ticks ClassPasses::*pass) {
    for (const WorkPartUse& use : lowered_.works[work.index()].parts) {
      const bool again = lowered_.parts[static_cast<std::size_t>(use.part)].recompute;
      // Recomputation is the same before a split backward: it is counted once.
      if (!again || pass == &ClassPasses::backward)
        count(use, layer, again ? &ClassPasses::recompute : pass);
      if (!again) layer += static_cast<std::size_t>(direction * use.count);
    }
  }

  void count(const WorkPartUse& use, std::size_t layer, Ticks ClassPasses::*pass) {
    const auto known =
        std::find_if(uses_.begin(), uses_.end(), [&](const Use& u) { return u.part == use.part; });
    if (known != uses_.end()) {
      known->times += use.count;
      return;
    }
    uses_.push_back({use.part, class_of(layer), pass, use.count});
  }

  void price(const CostModel& cost_model) {
    std::vector<Work> works(uses_.size());
    for (std::size_t i = 0; i < uses_.size(); ++i)
      works[i].parts = {{.part = uses_[i].part, .count = 1}};
    const std::vector<WorkPrice> prices = price_works(lowered_.parts, works, cost_model);
    for (std::size_t i = 0; i < uses_.size(); ++i)
      passes_[uses_[i].layer_class].*uses_[i].pass += prices[i].duration * uses_[i].times;
  }

  const ModelGraph& model_;
  const Strategy& strategy_;
  const LoweredStages& lowered_;
  std::vector<Use> uses_;
  std::vector<ClassPasses> passes_;   ///< by layer class, of all its layers
  std::vector<std::int64_t> layers_;  ///< by layer class
};

}  // namespace

LayerPasses layer_passes(const Strategy& strategy, const ModelGraph& model, const Cluster& cluster,
                         const CostModel& cost_model) {
  const bool selective = recomputes_operators(strategy.recompute.kind);
  // One stage per device: the order of work does not matter here.
  Plan probe{strategy, even_cut(block_count(model), strategy.degrees.pipeline)};
  probe.strategy.degrees.chunks = 1;
  probe.strategy.schedule = Strategy{}.schedule;
  if (!selective) probe.strategy.recompute = {.kind = RecomputeKind::kFull};
  const LoweredStages lowered = lower_stages(probe, model, cluster);
  const ClassTimes classes(model, probe, lowered, cost_model);

  LayerPasses passes;
  for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
    const ClassPasses p = classes.of(layer);
    const PassTimes recomputed{p.forward, p.backward + p.recompute, p.backward_input + p.recompute};
    passes.plain.push_back(selective ? recomputed
                                     : PassTimes{p.forward, p.backward, p.backward_input});
    passes.recomputed.push_back(recomputed);
  }
  // Sharded over all pipeline ranks, the embedding and the head load every stage alike.
  const ScheduleRule* rule = find_schedule_rule(strategy.schedule);
  if (rule != nullptr && rule->output_barriers > 0)
    for (std::vector<PassTimes>* layers : {&passes.plain, &passes.recomputed})
      layers->front() = layers->back() = {};
  return passes;
}

LayerTimes layer_times(std::span<const PassTimes> layers) {
  MW_CHECK(layers.size() >= 2);
  const auto both = [](const PassTimes& layer) { return layer.forward + layer.backward; };
  LayerTimes times{.embedding = both(layers.front()), .head = both(layers.back()), .blocks = {}};
  times.blocks.reserve(layers.size() - 2);
  for (const PassTimes& block : layers.subspan(1, layers.size() - 2))
    times.blocks.push_back(both(block));
  return times;
}

std::vector<PassTimes> stage_passes(const LayerPasses& layers,
                                    std::span<const int> blocks_per_stage,
                                    const Recompute& recompute) {
  std::vector<PassTimes> stages(blocks_per_stage.size());
  const auto add = [](PassTimes& stage, const PassTimes& layer) {
    stage.forward += layer.forward;
    stage.backward += layer.backward;
    stage.backward_input += layer.backward_input;
  };
  add(stages.front(), layers.plain.front());
  add(stages.back(), layers.plain.back());
  std::size_t layer = 1;
  for (std::size_t stage = 0; stage < stages.size(); ++stage)
    for (int i = 0; i < blocks_per_stage[stage]; ++i, ++layer)
      add(stages[stage], i < recomputed_blocks(recompute, static_cast<int>(stage))
                             ? layers.recomputed[layer]
                             : layers.plain[layer]);
  return stages;
}

}  // namespace meshwright
