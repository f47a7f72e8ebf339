#include "planner/layer_times.hpp"

#include <algorithm>
#include <optional>
#include <variant>

#include "core/check.hpp"
#include "core/schedule.hpp"
#include "planner/candidates.hpp"

namespace meshwright {
namespace {

/// By operator: the class of the layer it stands in.
std::vector<std::int32_t> class_of_operator(const ModelGraph& model) {
  std::vector<std::int32_t> classes(model.operators.size());
  for (const Layer& layer : model.layers)
    for (std::int32_t i = 0; i < layer.operator_count; ++i)
      classes[static_cast<std::size_t>(layer.first_operator + i)] = layer.layer_class;
  return classes;
}

/// The layer class that a part belongs to: that of the operator its first kernel computes.
std::optional<std::int32_t> class_of_part(const WorkPart& part,
                                          std::span<const std::int32_t> class_of_operator) {
  for (const Step& step : part.steps)
    if (const auto* kernel = std::get_if<Kernel>(&step))
      return class_of_operator[kernel->source.index()];
  return std::nullopt;
}

struct ClassPasses {
  Ticks forward, backward, backward_input, recompute;
};

/// Sums the parts of all stages by layer class, then divides by the layers of the class.
class ClassTimes {
 public:
  ClassTimes(const ModelGraph& model, const LoweredStages& lowered, const CostModel& cost_model)
      : lowered_(lowered),
        class_of_operator_(class_of_operator(model)),
        passes_(static_cast<std::size_t>(layer_class_count(model))),
        layers_(passes_.size(), 0) {
    for (const Layer& layer : model.layers) ++layers_[static_cast<std::size_t>(layer.layer_class)];
    for (const StageWorks& stage : lowered.stages) {
      count(stage.forward, &ClassPasses::forward);
      count(stage.backward, &ClassPasses::backward);
      count(stage.backward_input, &ClassPasses::backward_input);
    }
    price(cost_model);
  }

  ClassPasses of(const Layer& layer) const {
    const auto c = static_cast<std::size_t>(layer.layer_class);
    const auto share = [&](Ticks sum) {
      MW_CHECK(sum.value % layers_[c] == 0);
      return sum / layers_[c];
    };
    const ClassPasses& sum = passes_[c];
    return {share(sum.forward), share(sum.backward), share(sum.backward_input),
            share(sum.recompute)};
  }

 private:
  /// A part that is used, in which pass and how often over all stages.
  struct Use {
    std::int32_t part;
    Ticks ClassPasses::*pass;
    std::int64_t times;
  };

  void count(WorkId work, Ticks ClassPasses::*pass) {
    for (const WorkPartUse& use : lowered_.works[work.index()].parts) {
      const bool again = lowered_.parts[static_cast<std::size_t>(use.part)].recompute;
      if (again && pass != &ClassPasses::backward) continue;  // the same before a split backward
      const auto known = std::find_if(uses_.begin(), uses_.end(),
                                      [&](const Use& u) { return u.part == use.part; });
      if (known != uses_.end())
        known->times += use.count;
      else
        uses_.push_back({use.part, again ? &ClassPasses::recompute : pass, use.count});
    }
  }

  void price(const CostModel& cost_model) {
    std::vector<Work> works(uses_.size());
    for (std::size_t i = 0; i < uses_.size(); ++i)
      works[i].parts = {{.part = uses_[i].part, .count = 1}};
    const std::vector<WorkPrice> prices = price_works(lowered_.parts, works, cost_model);
    for (std::size_t i = 0; i < uses_.size(); ++i) {
      const WorkPart& part = lowered_.parts[static_cast<std::size_t>(uses_[i].part)];
      const std::optional<std::int32_t> c = class_of_part(part, class_of_operator_);
      MW_CHECK(c.has_value() || prices[i].duration == Ticks());
      if (c)
        passes_[static_cast<std::size_t>(*c)].*uses_[i].pass += prices[i].duration * uses_[i].times;
    }
  }

  const LoweredStages& lowered_;
  std::vector<std::int32_t> class_of_operator_;
  std::vector<Use> uses_;
  std::vector<ClassPasses> passes_;   ///< by layer class, of all its layers
  std::vector<std::int64_t> layers_;  ///< by layer class
};

}  // namespace

LayerPasses layer_passes(const Strategy& strategy, const ModelGraph& model, const Cluster& cluster,
                         const CostModel& cost_model) {
  const bool selective = strategy.recompute.kind == RecomputeKind::kSelective;
  const ScheduleRule* rule = find_schedule_rule(strategy.schedule);
  MW_CHECK(rule != nullptr);
  const int parts = model_parts(rule->placement(request_of(strategy)));
  Plan probe{strategy, even_cut(block_count(model), parts)};
  probe.strategy.recompute = {.kind = selective ? RecomputeKind::kSelective : RecomputeKind::kFull,
                              .blocks = 0};
  const LoweredStages lowered = lower_stages(probe, model, cluster);
  const ClassTimes classes(model, lowered, cost_model);

  LayerPasses passes;
  for (const Layer& layer : model.layers) {
    const ClassPasses p = classes.of(layer);
    const PassTimes recomputed{p.forward, p.backward + p.recompute, p.backward_input + p.recompute};
    passes.plain.push_back(selective ? recomputed
                                     : PassTimes{p.forward, p.backward, p.backward_input});
    passes.recomputed.push_back(recomputed);
  }
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
  int recomputed = 0;
  if (recompute.kind == RecomputeKind::kFull) recomputed = static_cast<int>(layers.plain.size());
  if (recompute.kind == RecomputeKind::kBlocks) recomputed = recompute.blocks;

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
      add(stages[stage], i < recomputed ? layers.recomputed[layer] : layers.plain[layer]);
  return stages;
}

}  // namespace meshwright
