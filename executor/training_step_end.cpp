// The end of a training step on one rank: gradients are summed or scattered, their norm clips them,
// and every rank updates the elements that are its own.
#include <algorithm>

#include "core/check.hpp"
#include "executor/training_actions.hpp"

namespace meshwright {
namespace {

bool is_copy(CollectiveKind kind) {
  return kind == CollectiveKind::kCopyToHost || kind == CollectiveKind::kCopyFromHost;
}
std::span<float> floats_of(const Vector& of) {
  return {static_cast<float*>(of.data), static_cast<std::size_t>(of.size)};
}
Block block_of(const ParameterRange& range) { return {range.first, range.first + range.count}; }

template <class T>
std::span<T> part_of(std::span<T> of, const Block& block, std::int64_t first) {
  return of.subspan(static_cast<std::size_t>(block.begin - first),
                    static_cast<std::size_t>(block.size()));
}

/// Calls visit(piece, block) for the own elements of every piece among those of `range`.
template <class Visit>
void for_each_own(const ParameterRun& run, const Block& range, Visit visit) {
  for (std::size_t p = 0; p < run.layout().pieces.size(); ++p) {
    const Block block = intersection(run.layout().pieces[p].own, range);
    if (block.size() > 0) visit(p, block);
  }
}

}  // namespace

Ticks TrainingActions::communicate(const Task& task, const Collective& collective,
                                   std::span<const RankId> members, Ticks ready) {
  if (is_copy(collective.kind)) {
    copy_with_host(collective);
    return ready;
  }
  RankGroup group(rank_.communicator, {members.begin(), members.end()},
                  {Channel::kData, task.partner});
  if (collective.parameters.part >= 0)
    return exchange_.carry_out(collective, *stage_of_part(collective.parameters.part).parameters,
                               group, gathered_.use_of(id_of(task)), ready);
  if (collective.axis == Axis::kPipeline)
    return all_reduce_table(*stage_of(task).parameters, group, ready);
  if (collective.axis == Axis::kTensor) return sum_partial_gradients(stage_of(task), group, ready);
  return reduce_norm(group, ready);
}

TrainingActions::Stage& TrainingActions::stage_of_part(int part) {
  for (std::size_t s = 0; s < stages_.size(); ++s)
    if (stages_[s].parameters && runnable_.part_of_stage(s) == part) return stages_[s];
  MW_CHECK(false);
}

/// The table that embedding and head share. Both cut it alike.
Ticks TrainingActions::all_reduce_table(StageParameters& parameters, RankGroup& group,
                                        Ticks ready) {
  ParameterRun& run = parameters.run(false);
  const ParameterShard& table = parameters.shard(shared_table_);
  const Block block{table.offset, table.offset + table.elements()};
  return group.all_reduce(run.layout().cuts_gradients ? run.own_gradients(run.piece_at(block.begin))
                                                      : floats_of(run.gradients(block)),
                          ready);
}

/// Parameters that every tensor rank holds whole, but has used on a part of the tokens or the
/// heads: see PartialGradients (core/operator_work.hpp).
std::vector<TensorId> TrainingActions::partial_parameters(const Stage& stage) const {
  std::vector<TensorId> found;
  for (const LayerId layer : stage.layers) {
    const Layer& l = rank_.model.layers[layer.index()];
    for (int i = 0; i < l.operator_count; ++i) {
      const Operator& op = rank_.model.operators[static_cast<std::size_t>(l.first_operator + i)];
      const bool on_features = !op.outputs.empty() &&
                               rank_.activation(op.outputs.front()).cut == ActivationCut::kFeatures;
      for (const TensorId id : op.parameters) {
        const auto& whole = std::get<ParameterTensor>(rank_.model.tensors[id.index()].shape);
        if (whole.cut == ParameterCut::kReplicated && whole.trained_by_gradient &&
            (on_features || rank_.strategy.sequence_parallel))
          found.push_back(id);
      }
    }
  }
  return found;
}

/// Tensor ranks cut them alike over the data ranks: of gradients that are cut, each sums its share.
Ticks TrainingActions::sum_partial_gradients(Stage& stage, RankGroup& group, Ticks ready) {
  std::vector<std::span<float>> runs;
  for (const TensorId id : partial_parameters(stage)) {
    const ParameterShard& shard = stage.parameters->shard(id);
    ParameterRun& run = stage.parameters->run(shard.expert);
    const Block block{shard.offset, shard.offset + shard.elements()};
    if (!run.layout().cuts_gradients)
      runs.push_back(floats_of(run.gradients(block)));
    else
      for_each_own(run, block, [&](std::size_t piece, const Block& own) {
        runs.push_back(
            part_of(run.own_gradients(piece), own, run.layout().pieces[piece].own.begin));
      });
  }
  std::vector<float> packed;
  for (const std::span<float> run : runs) packed.insert(packed.end(), run.begin(), run.end());
  ready = group.all_reduce(std::span(packed), ready);
  auto next = packed.begin();
  for (const std::span<float> run : runs) {
    std::copy_n(next, run.size(), run.begin());
    next += static_cast<std::ptrdiff_t>(run.size());
  }
  return ready;
}

/// Ranks that count the same elements of a parameter into the norm.
std::int64_t TrainingActions::copies_of(const Stage& stage, const ParameterShard& shard) const {
  const Strategy& s = rank_.strategy;
  const ParallelDegrees& d = s.degrees;
  const std::int64_t experts = std::int64_t{d.expert} * d.expert_tensor;
  const std::int64_t dense = std::int64_t{d.data} * d.context;
  const std::int64_t replicas = shard.expert ? dense * d.tensor / experts : dense;
  std::int64_t copies = stage.holders * replicas;
  const std::int64_t shards = s.data_parallelism.shard_ranks;
  if (s.zero > 0) copies = shards == 0 || shards >= replicas ? 1 : replicas / shards;
  if (!shard.is_cut) copies *= d.tensor;
  return shard.tensor == shared_table_ ? copies * 2 : copies;
}

/// Every parameter counts once, however many ranks hold it.
double TrainingActions::squared_norm(Stage& stage) {
  double sum = 0;
  for (const ParameterShard& shard : stage.parameters->shards().shards) {
    ParameterRun& run = stage.parameters->run(shard.expert);
    float part = 0;
    for_each_own(
        run, {shard.offset, shard.offset + shard.elements()},
        [&](std::size_t piece, const Block& block) {
          const std::span<float> own =
              part_of(run.own_gradients(piece), block, run.layout().pieces[piece].own.begin);
          rank_.run(rank_.kernels.squared_norm,
                    {.x = {own.data(), static_cast<std::int64_t>(own.size()), Dtype::kFp32},
                     .sum = &part});
        });
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
  if (rank_.strategy.data_parallelism.offload_optimizer) return;  // the processor does it
  for (Stage& stage : stages_) {
    if (!stage.parameters) continue;
    for (const bool expert : {false, true}) {
      ParameterRun& run = stage.parameters->run(expert);
      update(run, {0, run.elements()});
    }
  }
}

/// The own ones of these elements.
void TrainingActions::update(ParameterRun& run, const Block& range) {
  for_each_own(run, range, [&](std::size_t piece, const Block& block) {
    const std::int64_t first = run.layout().pieces[piece].own.begin;
    const Vector weights =
        meshwright::part_of(run.own_weights(piece), block.begin - first, block.size());
    const std::span<float> gradient = part_of(run.gradients_for_update(piece), block, first);
    const bool has_master = run.has_master();
    rank_.run(rank_.kernels.adamw,
              {.master = has_master ? part_of(run.master(piece), block, first) : floats_of(weights),
               .first_moment = part_of(run.first_moment(piece), block, first),
               .second_moment = part_of(run.second_moment(piece), block, first),
               .gradient = {gradient.data(), block.size(), Dtype::kFp32},
               .parameter = has_master && !run.layout().state_on_host ? weights : Vector{},
               .learning_rate = options_.learning_rate,
               .beta1 = options_.beta1,
               .beta2 = options_.beta2,
               .epsilon = options_.epsilon,
               .weight_decay = options_.weight_decay,
               .step = step_ + 1,
               .gradient_scale = &clip_scale_});
  });
}

// ---- optimizer state in host memory ----

/// What the processor updates is what the copy behind it takes back.
void TrainingActions::update_on_host(const Task& task) {
  const TaskGraph& graph = runnable_.graph();
  for (const TaskId id : runnable_.tasks_of(rank_.rank)) {
    const Task& copy = graph.tasks[id.index()];
    if (copy.kind != TaskKind::kCollective || copy.stream != Stream::kFromHost) continue;
    const std::span<const TaskId> before = graph.dependencies_of(id);
    if (std::find(before.begin(), before.end(), id_of(task)) == before.end()) continue;
    const ParameterRange& range = graph.works[copy.work.index()].collective.parameters;
    update(stage_of_part(range.part).parameters->run(range.expert), block_of(range));
  }
}

void TrainingActions::copy_with_host(const Collective& collective) {
  const ParameterRange& range = collective.parameters;
  ParameterRun& run = stage_of_part(range.part).parameters->run(range.expert);
  for_each_own(run, block_of(range), [&](std::size_t piece, const Block& block) {
    const std::int64_t first = run.layout().pieces[piece].own.begin;
    if (collective.kind == CollectiveKind::kCopyToHost) {
      std::ranges::copy(part_of(run.own_gradients(piece), block, first),
                        part_of(run.gradients_for_update(piece), block, first).begin());
      return;
    }
    rank_.run(
        rank_.kernels.cast,
        {.x = {part_of(run.master(piece), block, first).data(), block.size(), Dtype::kFp32},
         .y = meshwright::part_of(run.own_weights(piece), block.begin - first, block.size())});
  });
}

}  // namespace meshwright
