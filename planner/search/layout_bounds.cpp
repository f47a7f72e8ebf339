#include "planner/search/layout_bounds.hpp"

#include <algorithm>
#include <variant>

#include "core/plan/job_groups.hpp"
#include "planner/search/layer_times.hpp"
#include "simulator/cost/forwarded_costs.hpp"

namespace meshwright {
namespace {

/// Of what a layer takes, only its own kernels and the collectives that block it.
class OwnCosts final : public ForwardedCosts {
 public:
  using ForwardedCosts::ForwardedCosts;
  using ForwardedCosts::time_of;
  Seconds time_of(const Collective& collective) const override {
    return collective.overlap.other_microbatch ? Seconds() : base_.time_of(collective);
  }
  Seconds wait_of(int /*ranks*/, Seconds /*work*/) const override { return {}; }
};

/// Works on the rows that are routed to experts.
bool is_of_experts(const ModelGraph& model, const Operator& op) {
  const auto is_routed = [&](TensorId id) {
    const auto* activation = std::get_if<ActivationTensor>(&model.tensors[id.index()].shape);
    return activation != nullptr && activation->routed;
  };
  return std::ranges::any_of(op.inputs, is_routed) || std::ranges::any_of(op.outputs, is_routed);
}

template <class Predicate>
ModelGraph with_operators(const ModelGraph& model, const Predicate& is_wanted) {
  ModelGraph some = model;
  some.operators.clear();
  for (Layer& layer : some.layers) {
    const auto first = static_cast<std::int32_t>(some.operators.size());
    for (const Operator& op : std::span(model.operators)
                                  .subspan(static_cast<std::size_t>(layer.first_operator),
                                           static_cast<std::size_t>(layer.operator_count)))
      if (is_wanted(op)) some.operators.push_back(op);
    layer.first_operator = first;
    layer.operator_count = static_cast<std::int32_t>(some.operators.size()) - first;
  }
  return some;
}

}  // namespace

Strategy strategy_of_layers(const SearchJob& job, const Layout& layout,
                            const Recompute& recompute) {
  Candidate candidate{.layout = layout, .pipeline = {}, .recompute = {}, .replication = {}};
  candidate.replication.data = job.fixed.data_parallelism;
  if (recomputes_operators(recompute.kind)) candidate.recompute = recompute;
  Strategy strategy = strategy_of(candidate, job.goal, job.fixed);
  strategy.schedule = kDefaultSchedule;
  return strategy;
}

LayoutBounds::LayoutBounds(const SearchJob& job)
    : job_(job),
      fixed_(strategy_of(job.fixed)),
      outside_(with_operators(job.model,
                              [&](const Operator& op) { return !is_of_experts(job.model, op); })),
      experts_(with_operators(job.model,
                              [&](const Operator& op) { return is_of_experts(job.model, op); })) {}

ModelTimes LayoutBounds::price(const ModelGraph& part, const Layout& layout) const {
  const OwnCosts costs(job_.cost_model);
  const LayerPasses passes =
      layer_costs(strategy_of_layers(job_, layout), part, job_.cluster, costs).passes;
  return {.all = total_time(passes, false), .blocks = total_time(without_ends(passes), false)};
}

ModelTimes LayoutBounds::times_of(const Layout& layout) {
  const ParallelDegrees& d = layout.degrees;
  const PerGroup<GroupShape> groups =
      layer_groups_of(d, fixed_.model_parallelism.order, job_.cluster);
  const std::int64_t cut = layout.sequence_parallel, overlap = layout.tensor_overlap;
  const auto key_with = [](std::initializer_list<std::int64_t> choices,
                           std::initializer_list<GroupShape> shapes) {
    Key key{};
    auto end = std::ranges::copy(choices, key.begin()).out;
    for (const GroupShape& shape : shapes)
      for (const int number : {shape.ranks, shape.nodes, shape.groups_per_node}) *end++ = number;
    return key;
  };
  ModelTimes times =
      *outside_.times.get(key_with({d.tensor, d.context, cut, overlap,
                                    static_cast<std::int64_t>(layout.context), layout.micro_batch},
                                   {groups.tensor, groups.context}),
                          [&] { return price(outside_.model, layout); });
  if (experts_.model.operators.empty()) return times;
  const std::int64_t tokens =
      layout.micro_batch * divide_up(job_.goal.sequence_length, std::int64_t{d.context});
  const ModelTimes of_experts =
      *experts_.times.get(key_with({d.tensor, d.expert, d.expert_tensor, cut, overlap, tokens},
                                   {groups.tensor, groups.expert, groups.expert_tensor}),
                          [&] { return price(experts_.model, layout); });
  times.all += of_experts.all;
  times.blocks += of_experts.blocks;
  return times;
}

}  // namespace meshwright
