// Data parallelism with the whole model on every device: parameter servers, and a single process.
#include <algorithm>

#include "core/base/check.hpp"
#include "executor/training/training_actions.hpp"

namespace meshwright {

bool TrainingActions::has_servers() const {
  const DataParallelKind kind = rank_.strategy.data_parallelism.kind;
  return kind == DataParallelKind::kParameterServer ||
         kind == DataParallelKind::kAsyncParameterServer;
}

bool TrainingActions::is_apart() const {
  return has_servers() && rank_.rank.value >= rank_.strategy.degrees.data;
}

void TrainingActions::set_up_whole_models() {
  const Strategy& s = rank_.strategy;
  if (s.data_parallelism.kind == DataParallelKind::kOneProcess)
    one_process_.emplace(rank_, *stages_.front().parameters);
  if (!has_servers()) return;
  const ServerPlace place{.ranks = static_cast<int>(runnable_.graph().ranks.size()),
                          .workers = s.degrees.data,
                          .servers = s.data_parallelism.servers};
  if (place.is_server(rank_.rank)) {
    server_.layers = stages_.front().layers;
    const PartShards shards = shards_of_part(rank_.model, server_.layers, s, rank_.rank);
    server_.parameters = std::make_unique<StageParameters>(
        rank_, server_.layers, server_layouts(place, rank_.rank, shards), options_.seed);
  }
  servers_.emplace(rank_, place, stages_.front().parameters.get(), server_.parameters.get());
}

std::vector<StageParameters*> TrainingActions::updated_parameters() {
  std::vector<StageParameters*> updated;
  for (Stage& stage : stages_)
    if (stage.parameters && stage.parameters->run(false).layout().has_state)
      updated.push_back(stage.parameters.get());
  if (server_.parameters) updated.push_back(server_.parameters.get());
  return updated;
}

std::vector<StageParameters*> TrainingActions::held_parameters() {
  std::vector<StageParameters*> held;
  for (Stage& stage : stages_)
    if (stage.parameters) held.push_back(stage.parameters.get());
  if (server_.parameters) held.push_back(server_.parameters.get());
  return held;
}

/// An asynchronous server performs one update per worker and step.
void TrainingActions::resume_after(std::int64_t steps) {
  const Strategy& s = rank_.strategy;
  const bool each = s.data_parallelism.kind == DataParallelKind::kAsyncParameterServer;
  server_updates_ = steps * (each ? s.degrees.data : 1);
}

Ticks TrainingActions::communicate_whole_models(const Task& task, const Collective& collective,
                                                std::span<const RankId> members, RankGroup& group,
                                                Ticks ready) {
  const MessageTag tag{Channel::kData, task.partner};
  switch (collective.kind) {
    case CollectiveKind::kPush:
      if (servers_ && !is_apart()) clip_own_gradients();
      return servers_->push(collective, members, group, tag, ready);
    case CollectiveKind::kPull:
      return servers_->pull(collective, members, group, tag, ready);
    case CollectiveKind::kAllReduce:
      return reduce_norm_of_servers(group, ready);
    case CollectiveKind::kBroadcast:
      return one_process_->broadcast_weights(group, ready);
    default:
      break;
  }
  ready = group.synchronize(ready);
  if (collective.kind == CollectiveKind::kReduce) {
    one_process_->reduce_gradients(members, tag);
    return ready;
  }
  Stage& stage = stages_.front();
  const auto found = stage.microbatches.find(task.microbatch);
  if (found == stage.microbatches.end()) {  // inputs are sent before the forward pass
    std::vector<TokenRows> all;
    if (one_process_->is_first()) all = rows_of_all(task.microbatch);
    one_process_->scatter_words(members, tag, all, rows_.at(task.microbatch));
    return ready;
  }
  const TensorId outputs = rank_.model.operators.back().inputs.front();
  if (collective.kind == CollectiveKind::kGather)
    one_process_->gather_outputs(members, tag, outputs, found->second);
  else
    one_process_->scatter_gradients(members, tag, outputs, found->second);
  return ready;
}

// ---- parameter servers ----

/// An asynchronous worker clips its push by its own norm, since no server sees the full gradient.
void TrainingActions::clip_own_gradients() {
  if (rank_.strategy.data_parallelism.kind != DataParallelKind::kAsyncParameterServer ||
      norm_is_known_)
    return;
  const auto sum = static_cast<float>(squared_norm(stages_.front()));
  check_own_gradients(sum);
  rank_.run(rank_.kernels.clip_scale,
            {.sum = &sum, .limit = options_.gradient_clip, .scale = clip_scale()});
  servers_->scale_gradients(rank_.on_host(clip_scale()));
  norm_is_known_ = true;
}

Ticks TrainingActions::reduce_norm_of_servers(RankGroup& group, Ticks ready) {
  std::array<float, 1> sum{static_cast<float>(squared_norm(server_))};
  ready = group.all_reduce(std::span(sum), ready);
  check_own_gradients(sum.front());
  rank_.run(rank_.kernels.clip_scale,
            {.sum = sum.data(), .limit = options_.gradient_clip, .scale = clip_scale()});
  return ready;
}

/// With synchronous training several servers sum first and update once the global norm is known.
void TrainingActions::update_as_server() {
  const DataParallelism& data = rank_.strategy.data_parallelism;
  const bool in_step = data.kind == DataParallelKind::kParameterServer;
  const bool is_of_own_worker = !in_step && !servers_->has_pushes();
  if (!sums_are_there_) {
    if (is_of_own_worker) clip_own_gradients();
    servers_->sum_pushes();
    sums_are_there_ = true;
    if (in_step && data.servers > 1) return;
    RankGroup alone(rank_.communicator, {rank_.rank}, {});
    if (in_step) reduce_norm_of_servers(alone, Ticks());
  }
  const float own_clip = rank_.on_host(clip_scale());
  if (!in_step) set_clip_scale(1);
  const std::int64_t step = std::exchange(step_, server_updates_++);  // AdamW counts updates
  for (const bool expert : {false, true})
    update(*server_.parameters, expert, {0, server_.parameters->run(expert).elements()});
  step_ = step;
  if (!in_step) set_clip_scale(own_clip);
  sums_are_there_ = false;
  if (is_of_own_worker) servers_->hand_to_own_worker();
}

// ---- one process ----

std::vector<TokenRows> TrainingActions::rows_of_all(int microbatch) {
  std::vector<TokenRows> all;
  const int own = rank_.at.data;
  for (int device = 0; device < rank_.strategy.degrees.data; ++device) {
    rank_.at.data = device;
    all.push_back(rows_of_microbatch(microbatch));
  }
  rank_.at.data = own;
  return all;
}

/// Computes on device 0 the loss of the outputs of all devices.
void TrainingActions::compute_loss_of_all(const Task& task, const Kernel& kernel) {
  if (kernel.source == last_op_ && kernel.phase == last_phase_) return;
  last_op_ = kernel.source;
  last_phase_ = kernel.phase;
  const std::vector<TokenRows> rows = rows_of_all(task.microbatch);
  std::vector<MicrobatchState>& states = one_process_->states();
  for (std::size_t device = 0; device < states.size(); ++device) {
    OperatorPass pass = pass_over(stage_of(task), rows[device], states[device], kernel.source);
    meshwright::compute(pass, kernel.phase);
    if (kernel.phase == Phase::kForward) note_loss(states[device], 0);
  }
}

}  // namespace meshwright
