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
  bool are_alike(std::size_t a, std::size_t b) const { return class_of(a) == class_of(b); }

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

  const auto run_of = [&](std::size_t layer) {
    const ClassPasses p = classes.of(layer);
    const PassTimes recomputed{p.forward, p.backward + p.recompute, p.backward_input + p.recompute};
    const PassTimes plain{p.forward, p.backward, p.backward_input};
    return LayerRun{.count = 1, .plain = selective ? recomputed : plain, .recomputed = recomputed};
  };
  LayerPasses passes;
  const std::size_t count = model.layers.size();
  MW_CHECK(count >= 2);
  passes.embedding = run_of(0).plain;
  passes.head = run_of(count - 1).plain;
  for (std::size_t layer = 1; layer + 1 < count; ++layer) {
    const bool is_like_last = layer > 1 && classes.are_alike(layer, layer - 1);
    if (is_like_last)
      ++passes.blocks.back().count;
    else
      passes.blocks.push_back(run_of(layer));
  }
  return passes;
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
