// The end of a training step on one rank: gradients are summed or scattered, their norm clips them,
// and every rank updates the elements that are its own.
#include <algorithm>

#include "core/check.hpp"
#include "executor/training_actions.hpp"

namespace meshwright {

Ticks TrainingActions::communicate(const Task& task, const Collective& collective,
                                   std::span<const RankId> members, Ticks ready) {
  RankGroup group(rank_.communicator, {members.begin(), members.end()},
                  {Channel::kData, task.partner});
  if (collective.parameters.part >= 0) return communicate_parameters(collective, group, ready);
  if (collective.axis == Axis::kPipeline) {  // the table that embedding and head share
    return all_reduce(group, stage_of(task).parameters->gradient(shared_table_), ready);
  }
  if (collective.axis == Axis::kTensor) return sum_partial_gradients(stage_of(task), group, ready);
  return reduce_norm(group, ready);
}

/// Of parameters that every tensor rank holds whole, but has used on a part of the tokens or the
/// heads: see PartialGradients (core/operator_work.hpp).
Ticks TrainingActions::sum_partial_gradients(Stage& stage, RankGroup& group, Ticks ready) {
  std::vector<std::span<float>> runs;
  std::vector<float> packed;
  for (const LayerId layer : stage.layers) {
    const Layer& l = rank_.model.layers[layer.index()];
    for (int i = 0; i < l.operator_count; ++i) {
      const Operator& op = rank_.model.operators[static_cast<std::size_t>(l.first_operator + i)];
      const bool on_features = !op.outputs.empty() &&
                               rank_.activation(op.outputs.front()).cut == ActivationCut::kFeatures;
      for (const TensorId id : op.parameters) {
        const auto& whole = std::get<ParameterTensor>(rank_.model.tensors[id.index()].shape);
        if (whole.cut != ParameterCut::kReplicated || !whole.trained_by_gradient ||
            !(on_features || rank_.strategy.sequence_parallel))
          continue;
        const Matrix gradient = stage.parameters->gradient(id);
        runs.emplace_back(static_cast<float*>(gradient.data),
                          static_cast<std::size_t>(gradient.rows * gradient.columns));
        packed.insert(packed.end(), runs.back().begin(), runs.back().end());
      }
    }
  }
  ready = group.all_reduce(std::span(packed), ready);
  auto next = packed.begin();
  for (const std::span<float> run : runs) {
    std::copy_n(next, run.size(), run.begin());
    next += static_cast<std::ptrdiff_t>(run.size());
  }
  return ready;
}

Ticks TrainingActions::communicate_parameters(const Collective& collective, RankGroup& group,
                                              Ticks ready) {
  const ParameterRange& range = collective.parameters;
  ParameterRun* run = nullptr;
  for (std::size_t s = 0; s < stages_.size(); ++s)
    if (stages_[s].parameters && runnable_.part_of_stage(s) == range.part)
      run = &stages_[s].parameters->run(range.expert);
  MW_CHECK(run != nullptr && range.first + range.count <= run->elements());
  const auto first = static_cast<std::size_t>(range.first);
  const auto count = static_cast<std::size_t>(range.count);
  switch (collective.kind) {
    case CollectiveKind::kAllReduce:
      return group.all_reduce(run->gradients.floats().subspan(first, count), ready);
    case CollectiveKind::kReduceScatter:
      return group.reduce_scatter(run->gradients.floats().subspan(first, count), ready);
    case CollectiveKind::kAllGather: {
      const auto element = static_cast<std::size_t>(bytes_per_element(rank_.dtype));
      return group.all_gather(run->weights.bytes().subspan(first * element, count * element),
                              static_cast<std::int64_t>(element), ready);
    }
    default:
      break;
  }
  MW_CHECK(false);  // check_runnable() refuses plans with others
}

/// Where gradients are scattered, each rank updates the blocks that it gets; else everything.
std::array<std::vector<Block>, 2> TrainingActions::updated_blocks(std::size_t stage) const {
  std::array<std::vector<Block>, 2> blocks;
  const TaskGraph& graph = runnable_.graph();
  for (const TaskId id : runnable_.tasks_of(rank_.rank)) {
    const Task& task = graph.tasks[id.index()];
    if (task.kind != TaskKind::kCollective) continue;
    const Collective& collective = graph.works[task.work.index()].collective;
    const ParameterRange& range = collective.parameters;
    if (collective.kind != CollectiveKind::kReduceScatter ||
        range.part != runnable_.part_of_stage(stage))
      continue;
    const std::vector<RankId>& members = runnable_.members_of(task);
    const auto me = std::find(members.begin(), members.end(), rank_.rank) - members.begin();
    const Block own = block_of(range.count, static_cast<int>(members.size()), static_cast<int>(me));
    const Block block{range.first + own.begin, range.first + own.end};
    std::vector<Block>& list = blocks[range.expert ? 1 : 0];
    if (std::find(list.begin(), list.end(), block) == list.end()) list.push_back(block);
  }
  for (std::vector<Block>& list : blocks)
    std::sort(list.begin(), list.end(),
              [](const Block& a, const Block& b) { return a.begin < b.begin; });
  return blocks;
}

/// Ranks that count the same elements of a parameter into the norm.
std::int64_t TrainingActions::copies_of(const Stage& stage, const ParameterShard& shard) const {
  const Strategy& s = rank_.strategy;
  std::int64_t copies = stage.holders;
  if (!shard.is_cut) copies *= s.degrees.tensor;
  const ParallelDegrees& d = s.degrees;
  const std::int64_t replicas = std::int64_t{d.data} * d.context;
  const std::int64_t experts = std::int64_t{d.expert} * d.expert_tensor;
  if (s.zero == 0) copies *= shard.expert ? replicas * d.tensor / experts : replicas;
  const bool is_tied = shard.tensor == shared_table_;
  return is_tied ? copies * 2 : copies;
}

/// Every parameter counts once, however many ranks hold it.
double TrainingActions::squared_norm(Stage& stage) {
  double sum = 0;
  for (const ParameterShard& shard : stage.parameters->shards().shards) {
    ParameterRun& run = stage.parameters->run(shard.expert);
    float part = 0;
    for (const Block& block : run.updated) {
      const std::int64_t first = std::max(shard.offset, block.begin);
      const std::int64_t last = std::min(shard.offset + shard.elements(), block.end);
      if (first >= last) continue;
      rank_.run(rank_.kernels.squared_norm,
                {.x = part_of(flat(run.gradients.view()), first, last - first), .sum = &part});
    }
    sum += static_cast<double>(part) / static_cast<double>(copies_of(stage, shard));
  }
  return sum;
}

Ticks TrainingActions::reduce_norm(RankGroup& group, Ticks ready) {
  double mine = 0;
  for (Stage& stage : stages_)
    if (stage.parameters) mine += squared_norm(stage);
  std::array<float, 1> sum{static_cast<float>(mine)};
  ready = group.all_reduce(std::span(sum), ready);
  rank_.run(rank_.kernels.clip_scale,
            {.sum = sum.data(), .limit = options_.gradient_clip, .scale = &clip_scale_});
  norm_is_known_ = true;
  return ready;
}

void TrainingActions::update_parameters() {
  if (!norm_is_known_) {  // a job of one rank has nobody to ask
    RankGroup alone(rank_.communicator, {rank_.rank}, {});
    reduce_norm(alone, Ticks());
  }
  for (Stage& stage : stages_) {
    if (!stage.parameters) continue;
    for (const bool expert : {false, true}) {
      std::int64_t place = 0;
      for (const Block& block : stage.parameters->run(expert).updated) {
        update(stage.parameters->run(expert), block, place);
        place += block.size();
      }
    }
  }
}

/// Elements of `block`, whose state begins at `place`.
void TrainingActions::update(ParameterRun& run, const Block& block, std::int64_t place) {
  if (block.size() == 0) return;
  const auto state = [&](OwnedMatrix& of) {
    return of.floats().subspan(static_cast<std::size_t>(place),
                               static_cast<std::size_t>(block.size()));
  };
  const bool has_master = rank_.dtype != Dtype::kFp32;
  const Vector weights = part_of(flat(run.weights.view()), block.begin, block.size());
  const std::span<float> own(static_cast<float*>(weights.data),
                             static_cast<std::size_t>(block.size()));
  rank_.run(rank_.kernels.adamw,
            {.master = has_master ? state(run.master) : own,
             .first_moment = state(run.first_moment),
             .second_moment = state(run.second_moment),
             .gradient = part_of(flat(run.gradients.view()), block.begin, block.size()),
             .parameter = has_master ? weights : Vector{},
             .learning_rate = options_.learning_rate,
             .beta1 = options_.beta1,
             .beta2 = options_.beta2,
             .epsilon = options_.epsilon,
             .weight_decay = options_.weight_decay,
             .step = step_ + 1,
             .gradient_scale = &clip_scale_});
}

}  // namespace meshwright
