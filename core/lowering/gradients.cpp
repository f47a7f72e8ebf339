// Gradient reduction at the end of a step: bucket by bucket as gradients become complete, or after
// the rank's last backward pass if there are no buckets; a tied table is reduced between its two
// holders. ZeRO 2 and 3 reduce with every backward pass: see data_parallel.cpp.
#include <algorithm>
#include <cstdlib>

#include "core/lowering/passes.hpp"
#include "core/plan/placement.hpp"

namespace meshwright {
namespace {

GradientReduction reduction_of(const LoweringContext& context, const ParameterRange& range,
                               int unit) {
  GradientReduction made{.range = range, .stages = {}, .after = {}};
  for (std::size_t s = 0; s < context.placement.part_of_stage.size(); ++s) {
    if (context.placement.part_of_stage[s] != range.part) continue;
    made.stages.emplace_back(s);
    const std::vector<std::int32_t>& completes = context.pipeline.completes_unit[s];
    made.after.push_back(completes.empty() ? last_backward_of(context, StageId(s)).value
                                           : completes[static_cast<std::size_t>(unit)]);
  }
  return made;
}

/// All dense gradients of a part. If tables are sharded, those of a table apart: see units.hpp.
std::vector<ParameterRange> dense_ranges(const LoweringContext& context, int part) {
  const std::int64_t dense = context.parameters[static_cast<std::size_t>(part)].local.dense;
  const std::int64_t table = shards_two_tables(context) ? context.parameters.back().tied_copy : 0;
  std::int64_t cut = 0;  // between the table and the others
  if (part == 0) cut = table;
  if (part + 1 == part_count(context.placement)) cut = dense - table;
  std::vector<ParameterRange> ranges;
  if (cut > 0) ranges.push_back({part, false, 0, cut});
  if (dense > cut) ranges.push_back({part, false, cut, dense - cut});
  return ranges;
}

/// In the order in which gradients become complete. Parts with unsplit passes reduce all dense,
/// then all expert gradients.
std::vector<GradientReduction> list_reductions(const LoweringContext& context) {
  const DataParallelism& data = context.strategy.data_parallelism;
  std::vector<GradientReduction> list;
  for (int part = 0; part < part_count(context.placement); ++part) {
    const auto index = static_cast<std::size_t>(part);
    const LocalParameters& local = context.parameters[index].local;
    const bool is_split = !context.units[index].units.empty() &&
                          (data.buckets.rule != BucketRule::kNone || data.offload_optimizer);
    if (is_split) {
      for (const GradientBucket& bucket : context.units[index].buckets)
        list.push_back(
            reduction_of(context, {part, bucket.expert, bucket.first, bucket.count}, bucket.unit));
    } else {
      for (const ParameterRange& range : dense_ranges(context, part))
        list.push_back(reduction_of(context, range, 0));
      if (local.expert > 0) list.push_back(reduction_of(context, {part, true, 0, local.expert}, 0));
    }
  }
  std::stable_sort(
      list.begin(), list.end(),
      [](const GradientReduction& a, const GradientReduction& b) { return a.last() < b.last(); });
  return list;
}

void reduce(LoweringContext& context, GradientReduction& reduction) {
  const std::vector<DataExchange> exchanges =
      reduce_exchanges(reduction.range, context.strategy, context.groups,
                       {.copies = static_cast<int>(reduction.stages.size())});
  if (exchanges.empty()) return;
  const std::vector<TaskId> after(reduction.after.begin(), reduction.after.end());
  append_exchanges(context, reduction, exchanges, after);
  for (std::size_t i = 0; i < reduction.stages.size(); ++i)
    reduction.after[i] =
        context.step_end.ready[device_of(context, reduction.stages[i]).index()].value;
}

void sum_over_tensor(LoweringContext& context, StageId stage, std::int64_t elements,
                     const DataGroup& group) {
  const WorkId work = append_collective_work(
      context.graph(), {CollectiveKind::kAllReduce, Axis::kTensor,
                        Bytes(gradient_bytes(context.strategy)) * elements, group.shape});
  open_collective(context.folded, group.spread);
  append_to_step_end(context, work, stage, last_backward_of(context, stage));
}

/// Reduces over tensor ranks that each hold a partial sum; see PartialGradients. Megatron-LM does
/// this at the same point (finalize_model_grads).
void sum_partial_gradients(LoweringContext& context) {
  const JobGroups& groups = context.groups;
  const std::int64_t stride = groups.tensor_stride;
  for (std::size_t s = 0; s < context.placement.part_of_stage.size(); ++s) {
    const auto part = static_cast<std::size_t>(context.placement.part_of_stage[s]);
    const PartialGradients& partial = context.parameters[part].partial;
    const int tensor = context.strategy.degrees.tensor;
    if (partial.over_tensor > 0)
      sum_over_tensor(context, StageId(s), partial.over_tensor,
                      {groups.tensor, {.stride = stride, .count = tensor}});
    if (partial.over_copies == 0) continue;
    const int copies = tensor / *traits_of(context.model).key_value_heads;
    const GroupShape shape = group_shape_of({.count = copies,
                                             .stride = rank_stride(groups, stride),
                                             .job_ranks = groups.all.ranks,
                                             .devices_per_node = groups.devices_per_node});
    sum_over_tensor(context, StageId(s), partial.over_copies,
                    {shape, {.stride = stride, .count = copies}});
  }
}

/// Embedding and head on different devices hold copies of one table and sum its gradients; under
/// ZeRO 2 and 3 each sums the same shard.
void reduce_tied_table(LoweringContext& context) {
  const JobGroups& groups = context.groups;
  const std::int64_t shares =
      context.strategy.zero >= 2 ? data_groups_of(context.strategy, groups, false).shard.shape.ranks
                                 : 1;
  const std::int64_t elements = divide_up(context.parameters.back().tied_copy, shares);
  const std::vector<StageId>& route = context.placement.routes.front();
  const std::vector<StageId> ends{route.front(), route.back()};
  const std::int64_t distance =
      std::abs(device_of(context, ends[1]).value - device_of(context, ends[0]).value) *
      groups.pipeline_stride;
  GroupShape shape = group_shape_of({.count = 2,
                                     .stride = distance,
                                     .job_ranks = context.placement.devices * groups.stage_ranks,
                                     .devices_per_node = groups.devices_per_node});
  // No other pipeline ranks of the node have such groups.
  shape.groups_per_node =
      static_cast<int>(std::min<std::int64_t>(shape.groups_per_node, groups.stage_ranks));
  const WorkId work = append_collective_work(
      context.graph(), {CollectiveKind::kAllReduce, Axis::kPipeline,
                        Bytes(gradient_bytes(context.strategy)) * elements, shape});
  open_collective(context.folded, {});
  for (const StageId stage : ends)
    append_to_step_end(context, work, stage, last_backward_of(context, stage));
}

/// Gradients that other sums follow are complete after those; `reduced`: StepEnd::ready before
/// them.
void wait_for_sums(LoweringContext& context, const std::vector<TaskId>& reduced) {
  const StepEnd& end = context.step_end;
  for (GradientReduction& reduction : context.step_end.reductions) {
    if (reduction.range.expert) continue;
    for (std::size_t i = 0; i < reduction.stages.size(); ++i) {
      const std::size_t device = device_of(context, reduction.stages[i]).index();
      if (end.ready[device] != reduced[device]) reduction.after[i] = end.ready[device].value;
    }
  }
}

}  // namespace

void reduce_gradients(LoweringContext& context) {
  if (!has_step_end(context)) return;
  StepEnd& end = context.step_end;
  end.ready.assign(static_cast<std::size_t>(context.placement.devices), TaskId(-1));
  end.reductions = list_reductions(context);
  const bool is_tied = context.model.tied_embeddings && context.parameters.back().tied_copy > 0;
  if (context.strategy.zero <= 1)
    for (GradientReduction& reduction : end.reductions) reduce(context, reduction);
  const std::vector<TaskId> reduced = end.ready;
  sum_partial_gradients(context);
  if (is_tied) reduce_tied_table(context);
  wait_for_sums(context, reduced);
}

}  // namespace meshwright
