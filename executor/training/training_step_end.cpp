// The end of a step on one rank: gradients are reduced and clipped by their norm, and every rank
// updates the elements that it owns. Also what data parallelism in one process adds.
#include <algorithm>

#include "executor/training/gradient_sums.hpp"
#include "executor/training/training_actions.hpp"

namespace meshwright {

void TrainingActions::prepare(const RunTask&, const Collective& collective) {
  const bool is_norm = collective.kind == CollectiveKind::kAllReduce &&
                       collective.axis == Axis::kData && collective.parameters.part < 0;
  if (is_norm && !servers_ && !one_process_) norm_.prepare();
}

Ticks TrainingActions::communicate(const RunTask& task, const Collective& collective,
                                   std::span<const RankId> members, Ticks ready) {
  if (is_host_copy(collective.kind)) {
    optimizer_.copy_with_host(stages_.run_of(collective.parameters), collective);
    return ready;
  }
  RankGroup group(rank_.communicator, {members.begin(), members.end()},
                  {Channel::kData, task.partner});
  if (servers_) return servers_->communicate(collective, members, group, steps_.first(), ready);
  if (one_process_) return communicate_in_one_process(task, collective, members, group, ready);
  if (collective.parameters.part >= 0)
    return exchange_.run(collective, *stages_.of_part(collective.parameters.part).parameters, group,
                         sharded_.use_of(task.id), ready);
  if (collective.axis == Axis::kPipeline)
    return sum_table_gradients(*stages_.of(task).parameters, stages_.shared_table(), group, ready);
  if (collective.axis == Axis::kTensor)
    return sum_partial_gradients(rank_, stages_.of(task), group, ready);
  return norm_.reduce(group, steps_.of(task.microbatch), ready);
}

/// Norm, update and zeroing: what the cost model covers with the optimizer task.
void TrainingActions::update_parameters(const Task& task) {
  if (!norm_.is_known()) {  // a single rank has no collective for the norm
    RankGroup alone(rank_.communicator, {rank_.rank}, {});
    norm_.reduce(alone, steps_.of(task.microbatch), Ticks());
  }
  // Offloaded optimizer state is updated on the host.
  const bool updates = !rank_.strategy.data_parallelism.offload_optimizer;
  for (RankStage& stage : stages()) {
    if (!stage.parameters) continue;
    if (updates) optimizer_.update_all(*stage.parameters, {steps_.first(), steps_.first()});
    stage.parameters->clear_gradients();
  }
}

/// Updates on the host; the next task copies the weights back.
void TrainingActions::update_on_host(const RunTask& task) {
  const TaskGraph& graph = runnable_.graph();
  for (const TaskId id : runnable_.tasks_of(rank_.rank)) {
    const Task& copy = graph.tasks[id.index()];
    if (copy.kind != TaskKind::kCollective || copy.stream != Stream::kFromHost) continue;
    const std::span<const TaskId> before = graph.dependencies_of(id);
    if (std::find(before.begin(), before.end(), task.id) == before.end()) continue;
    const ParameterRange& range = graph.works[copy.work.index()].collective.parameters;
    optimizer_.update(*stages_.of_part(range.part).parameters, range.expert, block_of(range),
                      {steps_.first(), steps_.first()});
  }
}

/// Flushless schedules: after the last backward pass of a batch, when its micro-batches are no
/// longer needed. Gradients are clipped by the norm of this stage only.
void TrainingActions::update_without_flush(const Task& task) {
  RankStage& stage = stages_.of(task);
  RankGroup alone(rank_.communicator, {rank_.rank}, {});
  norm_.reduce(alone, steps_.of(task.microbatch), Ticks());
  const int batch = steps_.versions()->batch_of(task.microbatch);
  for (const bool expert : {false, true}) stage.parameters->run(expert).begin_version(batch + 1);
  optimizer_.update_all(*stage.parameters,
                        {.step = steps_.of(task.microbatch),
                         .earlier = steps_.first() * steps_.updates_per_step() + batch});
  stage.parameters->clear_gradients();
  rows_.erase(rows_.begin(), rows_.upper_bound(task.microbatch));
  stage.microbatches.erase(stage.microbatches.begin(),
                           stage.microbatches.upper_bound(task.microbatch));
}

// ---- data parallelism in one process ----

std::vector<TokenRows> TrainingActions::rows_of_all_devices(std::int32_t microbatch) const {
  std::vector<TokenRows> all;
  all.reserve(static_cast<std::size_t>(rank_.strategy.degrees.data));
  for (int device = 0; device < rank_.strategy.degrees.data; ++device)
    all.push_back(rows_of(microbatch, device));
  return all;
}

Ticks TrainingActions::communicate_in_one_process(const Task& task, const Collective& collective,
                                                  std::span<const RankId> members, RankGroup& group,
                                                  Ticks ready) {
  if (collective.kind == CollectiveKind::kBroadcast)
    return one_process_->broadcast_weights(group, ready);
  ready = group.synchronize(ready);
  if (collective.kind == CollectiveKind::kReduce) {
    one_process_->reduce_gradients(members, group.tag());
    return ready;
  }
  RankStage& stage = stages().front();
  const auto found = stage.microbatches.find(task.microbatch);
  if (found == stage.microbatches.end()) {  // inputs are sent before the forward pass
    std::vector<TokenRows> all;
    if (one_process_->is_first()) all = rows_of_all_devices(task.microbatch);
    one_process_->scatter_tokens(members, group.tag(), all, rows_.at(task.microbatch));
    return ready;
  }
  const TensorId outputs = rank_.model.operators.back().inputs.front();
  if (collective.kind == CollectiveKind::kGather)
    one_process_->gather_outputs(members, group.tag(), outputs, found->second);
  else
    one_process_->scatter_gradients(members, group.tag(), outputs, found->second);
  return ready;
}

/// On device 0, of the outputs of all devices.
void TrainingActions::compute_loss_of_all_devices(const Task& task, const LayerStep& step,
                                                  const Kernel& kernel) {
  if (step.place.op == last_op_ && kernel.phase == last_phase_) return;
  last_op_ = step.place.op;
  last_phase_ = kernel.phase;
  const std::vector<TokenRows> rows = rows_of_all_devices(task.microbatch);
  std::vector<MicrobatchState>& states = one_process_->states();
  for (std::size_t device = 0; device < states.size(); ++device) {
    OperatorPass pass = pass_over(stages_.of(task), rows[device], states[device], step);
    meshwright::compute(pass, kernel.phase);
    if (kernel.phase == Phase::kForward) losses_.add(states[device], 0);
  }
}

}  // namespace meshwright
