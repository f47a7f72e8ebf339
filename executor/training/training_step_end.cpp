// The end of a training step on one rank: gradients are all-reduced or reduce-scattered and clipped
// by their norm, and every rank updates the elements it owns.
#include <algorithm>
#include <cmath>

#include "core/base/check.hpp"
#include "executor/training/training_actions.hpp"

namespace meshwright {
namespace {

bool is_copy(CollectiveKind kind) {
  return kind == CollectiveKind::kCopyToHost || kind == CollectiveKind::kCopyFromHost;
}

template <class T>
std::span<T> part_of(std::span<T> of, const Block& block, std::int64_t first) {
  return of.subspan(static_cast<std::size_t>(block.begin - first),
                    static_cast<std::size_t>(block.size()));
}

/// Elements of the columns replicated on several tensor ranks, row by row.
std::vector<Block> copied_columns(const ParameterShard& shard) {
  std::vector<Block> blocks;
  const std::int64_t columns = shard.extent(shard.held.size() - 1);
  std::int64_t first = 0;
  for (std::size_t r = 0; r < shard.column_copies.size(); ++r) {
    const std::int64_t size = shard.held.back()[r].size();
    for (std::int64_t row = 0; shard.column_copies[r] > 1 && row < shard.elements(); row += columns)
      blocks.push_back({shard.offset + row + first, shard.offset + row + first + size});
    first += size;
  }
  return blocks;
}

/// Calls visit(piece, block) for the owned elements of every piece within `range`.
template <class Visit>
void for_each_own(const ParameterRun& run, const Block& range, Visit visit) {
  for (std::size_t p = 0; p < run.layout().pieces.size(); ++p) {
    const Block block = intersection(run.layout().pieces[p].own, range);
    if (block.size() > 0) visit(p, block);
  }
}

}  // namespace

void TrainingActions::prepare(const Task&, const Collective& collective) {
  const bool is_norm = collective.kind == CollectiveKind::kAllReduce &&
                       collective.axis == Axis::kData && collective.parameters.part < 0;
  if (is_norm && !has_servers() && !one_process_) own_squared_norm_ = squared_norm_of_own();
}

Ticks TrainingActions::communicate(const Task& task, const Collective& collective,
                                   std::span<const RankId> members, Ticks ready) {
  if (is_copy(collective.kind)) {
    copy_with_host(collective);
    return ready;
  }
  RankGroup group(rank_.communicator, {members.begin(), members.end()},
                  {Channel::kData, task.partner});
  if (has_servers() || one_process_)
    return communicate_whole_models(task, collective, members, group, ready);
  if (collective.parameters.part >= 0)
    return exchange_.run(collective, *stage_of_part(collective.parameters.part).parameters, group,
                         gathered_.use_of(id_of(task)), ready);
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

/// All-reduces the tied embedding table, which both stages shard in the same way.
Ticks TrainingActions::all_reduce_table(StageParameters& parameters, RankGroup& group,
                                        Ticks ready) {
  ParameterRun& run = parameters.run(false);
  const ParameterShard& table = parameters.shard(shared_table_);
  const Block block{table.offset, table.offset + table.elements()};
  return group.all_reduce(run.layout().shards_gradients
                              ? run.own_gradients(run.piece_at(block.begin))
                              : floats_of(run.gradients(block)),
                          ready);
}

/// Partial gradients that tensor ranks must sum, see PartialGradients
/// (core/operators/operator_work.hpp): over all tensor ranks those of replicated parameters used on
/// a part of the tokens or heads; over the ranks with copies of key-value heads, those of the
/// copied columns.
std::vector<TrainingActions::PartialRange> TrainingActions::partial_gradients(
    const Stage& stage, bool over_copies) const {
  std::vector<PartialRange> found;
  for (const LayerId layer : stage.layers) {
    const Layer& l = rank_.model.layers[layer.index()];
    for (int i = 0; i < l.operator_count; ++i) {
      const Operator& op = rank_.model.operators[static_cast<std::size_t>(l.first_operator + i)];
      const bool on_features = !op.outputs.empty() &&
                               rank_.activation(op.outputs.front()).cut == ActivationCut::kFeatures;
      for (const TensorId id : op.parameters) {
        const ParameterShard& shard = stage.parameters->shard(id);
        const auto& whole = std::get<ParameterTensor>(rank_.model.tensors[id.index()].shape);
        const Block all{shard.offset, shard.offset + shard.elements()};
        if (over_copies) {
          for (const Block& block : copied_columns(shard)) found.push_back({shard.expert, block});
        } else if (whole.cut == ParameterCut::kReplicated &&
                   (on_features || rank_.strategy.sequence_parallel)) {
          found.push_back({shard.expert, all});
        }
      }
    }
  }
  return found;
}

/// All tensor ranks shard gradients over the data-parallel ranks in the same way; with sharded
/// gradients each sums its shard.
Ticks TrainingActions::sum_partial_gradients(Stage& stage, RankGroup& group, Ticks ready) {
  std::vector<PartialRange> ranges;
  if (!stage.summed_over_tensor) ranges = partial_gradients(stage, /*over_copies=*/false);
  stage.summed_over_tensor = true;  // from now on, over the copies
  if (ranges.empty()) ranges = partial_gradients(stage, /*over_copies=*/true);
  std::vector<std::span<float>> runs;
  for (const auto& [expert, block] : ranges) {
    ParameterRun& run = stage.parameters->run(expert);
    if (!run.layout().shards_gradients)
      runs.push_back(floats_of(run.gradients(block)));
    else
      for_each_own(run, block, [&](std::size_t piece, const Block& own) {
        runs.push_back(
            part_of(run.own_gradients(piece), own, run.layout().pieces[piece].own.begin));
      });
  }
  std::int64_t count = 0;
  for (const std::span<float> run : runs) count += std::ssize(run);
  OwnedMatrix packed = rank_.numbers(count);
  const auto copy = [&](bool packs) {
    std::int64_t next = 0;
    for (const std::span<float> run : runs) {
      const Vector part = meshwright::part_of(flat(packed.view()), next, std::ssize(run));
      const Vector in_place{run.data(), std::ssize(run), Dtype::kFp32};
      rank_.run(rank_.kernels.cast, {.x = packs ? in_place : part, .y = packs ? part : in_place});
      next += std::ssize(run);
    }
  };
  copy(/*packs=*/true);
  ready = group.all_reduce(packed.floats(), ready);
  copy(/*packs=*/false);
  return ready;
}

/// Number of ranks that contribute the same elements of a parameter to the norm.
std::int64_t TrainingActions::copies_of(const Stage& stage, const ParameterShard& shard) const {
  const Strategy& s = rank_.strategy;
  const ParallelDegrees& d = s.degrees;
  if (has_servers() || one_process_ || versions_) return 1;
  const std::int64_t experts = std::int64_t{d.expert} * d.expert_tensor;
  const std::int64_t dense = std::int64_t{d.data} * d.context;
  const std::int64_t replicas = shard.expert ? dense * d.tensor / experts : dense;
  std::int64_t copies = stage.holders * replicas;
  const std::int64_t shards = s.data_parallelism.shard_ranks;
  if (s.zero > 0) copies = shards == 0 || shards >= replicas ? 1 : replicas / shards;
  if (!shard.is_cut) copies *= d.tensor;
  return shard.tensor == shared_table_ ? copies * 2 : copies;
}

/// Counts every parameter once, however many ranks hold it, and only those trained by gradients.
double TrainingActions::squared_norm(Stage& stage) {
  struct Part {
    const ParameterShard& shard;
    Block range;
    bool is_copy = false;
  };
  std::vector<Part> parts;
  for (const ParameterShard& shard : stage.parameters->shards().shards) {
    if (!is_trained_by_gradient(shard)) continue;
    parts.push_back({shard, {shard.offset, shard.offset + shard.elements()}});
    for (const Block& block : copied_columns(shard)) parts.push_back({shard, block, true});
  }
  OwnedMatrix norms = rank_.numbers(std::ssize(parts));
  rank_.run(rank_.kernels.fill, {.y = flat(norms.view()), .value = 0});
  for (std::size_t i = 0; i < parts.size(); ++i)
    add_squared_norm(stage.parameters->run(parts[i].shard.expert), parts[i].range,
                     norms.floats().data() + i);
  const std::vector<float> on_host = rank_.on_host(norms.floats());
  double sum = 0, once = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const ParameterShard& shard = parts[i].shard;
    const auto norm = static_cast<double>(on_host[i]);
    if (parts[i].is_copy)  // count one copy only
      once -= norm * (1 - 1.0 / shard.column_copies.back());
    else
      once = norm;
    if (i + 1 == parts.size() || !parts[i + 1].is_copy)
      sum += once / static_cast<double>(copies_of(stage, shard));
  }
  return sum;
}

void TrainingActions::add_squared_norm(ParameterRun& run, const Block& range, float* sum) {
  for_each_own(run, range, [&](std::size_t piece, const Block& block) {
    const std::span<float> own =
        part_of(run.own_gradients(piece), block, run.layout().pieces[piece].own.begin);
    rank_.run(rank_.kernels.squared_norm,
              {.x = {own.data(), std::ssize(own), Dtype::kFp32}, .sum = sum});
  });
}

bool TrainingActions::is_trained_by_gradient(const ParameterShard& shard) const {
  const Tensor& tensor = rank_.model.tensors[shard.tensor.index()];
  return std::get<ParameterTensor>(tensor.shape).trained_by_gradient;
}

double TrainingActions::squared_norm_of_own() {
  double sum = 0;
  for (Stage& stage : stages_)
    if (stage.parameters) sum += squared_norm(stage);
  return sum;
}

Ticks TrainingActions::reduce_norm(RankGroup& group, Ticks ready) {
  if (!own_squared_norm_) own_squared_norm_ = squared_norm_of_own();
  std::array<float, 1> sum{static_cast<float>(*own_squared_norm_)};
  own_squared_norm_.reset();
  ready = group.all_reduce(std::span(sum), ready);
  check_gradients(sum.front(), group);
  rank_.run(rank_.kernels.clip_scale,
            {.sum = sum.data(), .limit = options_.gradient_clip, .scale = clip_scale()});
  norm_is_known_ = true;
  return ready;
}

/// Norm, update and zeroing: what the cost model covers with the optimizer task.
void TrainingActions::update_parameters() {
  if (!norm_is_known_) {  // with one rank there is no norm collective
    RankGroup alone(rank_.communicator, {rank_.rank}, {});
    reduce_norm(alone, Ticks());
  }
  // Offloaded optimizer state is updated on the host.
  const bool updates = !rank_.strategy.data_parallelism.offload_optimizer;
  for (Stage& stage : stages_) {
    if (!stage.parameters) continue;
    for (const bool expert : {false, true})
      if (updates) update(*stage.parameters, expert, {0, stage.parameters->run(expert).elements()});
    stage.parameters->clear_gradients();
  }
}

/// Updates the owned elements within `range`: by gradient, except score corrections.
void TrainingActions::update(StageParameters& parameters, bool expert, const Block& range) {
  ParameterRun& run = parameters.run(expert);
  std::int64_t next = range.begin;
  for (const ParameterShard& shard : parameters.shards().shards) {
    if (shard.expert != expert || is_trained_by_gradient(shard)) continue;
    const Block correction = intersection({shard.offset, shard.offset + shard.elements()}, range);
    if (correction.size() == 0) continue;
    update_by_gradient(run, {next, correction.begin});
    balance(run, shard, correction);
    next = correction.end;
  }
  update_by_gradient(run, {next, range.end});
}

/// Auxiliary-loss-free load balancing (DeepSeek-V3, arXiv 2412.19437, section 2.1.2): lowers the
/// score correction of experts with more rows than the mean and raises that of others. The
/// gradients hold the number of rows of each expert.
void TrainingActions::balance(ParameterRun& run, const ParameterShard& shard,
                              const Block& correction) {
  const double mean = mean_rows_of(shard.tensor);
  for_each_own(run, correction, [&](std::size_t piece, const Block& block) {
    const std::int64_t first = run.layout().pieces[piece].own.begin;
    const std::vector<float> rows =
        rank_.on_host(part_of(run.gradients_for_update(piece), block, first));
    const Vector weights =
        meshwright::part_of(run.own_weights(piece), block.begin - first, block.size());
    const std::span<float> exact =
        run.has_master() ? part_of(run.master(piece), block, first) : floats_of(weights);
    std::vector<float> moved = rank_.on_host(exact);
    for (std::size_t e = 0; e < rows.size(); ++e) {
      const double missing = mean - static_cast<double>(rows[e]);
      moved[e] +=
          missing == 0 ? 0 : std::copysign(options_.balance_rate, static_cast<float>(missing));
    }
    rank_.copy(exact.data(), moved.data(), exact.size_bytes());
    if (run.has_master() && !run.layout().state_on_host)
      rank_.run(rank_.kernels.cast,
                {.x = {exact.data(), block.size(), Dtype::kFp32}, .y = weights});
  });
}

/// Rows per expert and step with perfect balance.
double TrainingActions::mean_rows_of(TensorId correction) const {
  const Strategy& s = rank_.strategy;
  for (const Operator& op : rank_.model.operators)
    if (const auto* router = std::get_if<Router>(&op.shape);
        router != nullptr && op.parameters.back() == correction)
      return static_cast<double>(s.global_batch * s.sequence_length * router->experts_per_token) /
             router->experts;
  MW_CHECK(false);
}

void TrainingActions::update_by_gradient(ParameterRun& run, const Block& range) {
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
               .gradient_scale = clip_scale()});
  });
}

// ---- optimizer state in host memory ----

/// Updates on the host; the next task copies the weights back.
void TrainingActions::update_on_host(const Task& task) {
  const TaskGraph& graph = runnable_.graph();
  for (const TaskId id : runnable_.tasks_of(rank_.rank)) {
    const Task& copy = graph.tasks[id.index()];
    if (copy.kind != TaskKind::kCollective || copy.stream != Stream::kFromHost) continue;
    const std::span<const TaskId> before = graph.dependencies_of(id);
    if (std::find(before.begin(), before.end(), id_of(task)) == before.end()) continue;
    const ParameterRange& range = graph.works[copy.work.index()].collective.parameters;
    update(*stage_of_part(range.part).parameters, range.expert, block_of(range));
  }
}

void TrainingActions::copy_with_host(const Collective& collective) {
  const ParameterRange& range = collective.parameters;
  ParameterRun& run = stage_of_part(range.part).parameters->run(range.expert);
  for_each_own(run, block_of(range), [&](std::size_t piece, const Block& block) {
    const std::int64_t first = run.layout().pieces[piece].own.begin;
    if (collective.kind == CollectiveKind::kCopyToHost) {
      const std::span<float> gradients = part_of(run.own_gradients(piece), block, first);
      rank_.copy(part_of(run.gradients_for_update(piece), block, first).data(), gradients.data(),
                 gradients.size_bytes());
      return;
    }
    rank_.run(
        rank_.kernels.cast,
        {.x = {part_of(run.master(piece), block, first).data(), block.size(), Dtype::kFp32},
         .y = meshwright::part_of(run.own_weights(piece), block.begin - first, block.size())});
  });
}

}  // namespace meshwright
