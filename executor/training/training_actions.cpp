#include "executor/training/training_actions.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "executor/training/token_rows.hpp"

namespace meshwright {
namespace {

/// An update uses the mean over its own tokens: those of one worker with asynchronous servers, or
/// of a few micro-batches with flushless schedules.
float loss_scale_of(const Strategy& strategy, const StepNumbers& steps) {
  const bool alone = strategy.data_parallelism.kind == DataParallelKind::kAsyncParameterServer;
  const std::int64_t updates =
      steps.versions() ? steps.updates_per_step() : (alone ? strategy.degrees.data : 1);
  return static_cast<float>(updates) /
         static_cast<float>(strategy.global_batch * strategy.sequence_length);
}

/// Number of nodes that a group of expert ranks spans.
int expert_nodes_of(const TaskGraph& graph) {
  int nodes = 1;
  for (const WorkPart& part : graph.parts)
    for (const Step& step : part.steps)
      if (const auto* collective = std::get_if<Collective>(&step);
          collective != nullptr && collective->axis == Axis::kExpert &&
          collective->kind == CollectiveKind::kAllToAll)
        nodes = std::max(nodes, collective->group.nodes);
  return nodes;
}

/// What happens to buffers in one step.
std::span<const BufferEvent> events_of(const LayerStep& step) {
  return {step.buffers.begin(),
          std::ranges::upper_bound(step.buffers, step.index, {}, &BufferEvent::step)};
}

/// A buffer that the step acquires anew was replaced when it was made.
void free_consumed(MicrobatchState& state, const LayerStep& step) {
  const std::span<const BufferEvent> events = events_of(step);
  for (auto event = events.begin(); event != events.end(); ++event) {
    const bool is_replaced = std::any_of(event, events.end(), [&](const BufferEvent& later) {
      return later.action == BufferAction::kAcquire && later.buffer == event->buffer;
    });
    if (event->action == BufferAction::kConsume && !is_replaced) state.erase(event->buffer);
  }
}

bool is_backward(TaskKind kind) {
  return kind == TaskKind::kBackward || kind == TaskKind::kBackwardInput;
}

}  // namespace

TrainingActions::TrainingActions(const RunnableGraph& runnable, const Plan& plan,
                                 const ModelGraph& model, Communicator& communicator,
                                 const KernelTable& kernels, const TokenText& text,
                                 const TrainingOptions& options, RankProgress& progress,
                                 DeviceQueue* queue)
    : runnable_(runnable),
      rank_(model, plan, communicator, kernels, progress, queue),
      text_(text),
      options_(options),
      expert_nodes_(expert_nodes_of(runnable.graph())),
      steps_(rank_.strategy, PipelineRankId(rank_.at.pipeline)),
      stages_(rank_, runnable, plan, options.seed),
      checks_(rank_),
      losses_(rank_),
      norm_(rank_, stages_, checks_, options.gradient_clip),
      optimizer_(rank_, norm_, options_),
      exchange_(rank_),
      sharded_(stages_, runnable, rank_.strategy, rank_.rank) {
  const RankStage& first = stages().front();
  if (rank_.strategy.data_parallelism.kind == DataParallelKind::kOneProcess)
    one_process_.emplace(rank_, *first.parameters);
  if (has_servers(rank_.strategy.data_parallelism.kind))
    servers_.emplace(rank_, static_cast<int>(runnable.graph().ranks.size()), first.layers,
                     first.parameters.get(), norm_, optimizer_, options_.seed);
}

std::vector<StageParameters*> TrainingActions::updated_parameters() {
  std::vector<StageParameters*> updated = held_parameters();
  std::erase_if(updated,
                [](StageParameters* held) { return !held->run(false).layout().has_state; });
  return updated;
}

std::vector<StageParameters*> TrainingActions::held_parameters() {
  std::vector<StageParameters*> held;
  for (RankStage& stage : stages())
    if (stage.parameters) held.push_back(stage.parameters.get());
  if (servers_ && servers_->shard() != nullptr) held.push_back(servers_->shard());
  return held;
}

void TrainingActions::resume_after(std::int64_t steps) {
  if (servers_) servers_->resume_after(steps);
}

// ---- the step ----

void TrainingActions::begin_step(int step) {
  steps_.begin(step);
  losses_.begin_step();
  checks_.begin_step();
  norm_.begin_step();
  stages_.begin_step();
  rows_.clear();
  next_tag_ = {};
}

void TrainingActions::settle() {
  checks_.settle();
  losses_.settle();
}

void TrainingActions::begin_validation(const TokenText& text) {
  held_out_ = &text;
  sharded_.begin_validation();
}

void TrainingActions::end_validation() {
  held_out_ = nullptr;
  sharded_.end_validation();
}

TokenRows TrainingActions::rows_of(std::int32_t microbatch, int data) const {
  return token_rows(held_out_ == nullptr ? text_ : *held_out_, rank_.strategy,
                    {.step = steps_.of(microbatch),
                     .microbatch = steps_.microbatch_in_step(microbatch),
                     .data = data,
                     .context = rank_.at.context});
}

// ---- tasks ----

void TrainingActions::begin_task(const RunTask& task) {
  last_op_ = OperatorId(-1);
  current_layer_ = LayerId(-1);
  if (task.kind == TaskKind::kOptimizer) sharded_.free_reduced_gradients();
  if (task.stage < 0 || task.microbatch < 0) return;
  sharded_.open_gradients(task.id);
  if (!rows_.contains(task.microbatch))
    rows_[task.microbatch] = rows_of(task.microbatch, rank_.at.data);
  if (!is_pass(task.kind) || !runnable_.begins_pass(task)) return;
  RankStage& stage = stages_.of(task);
  const bool is_forward = task.kind == TaskKind::kForward;
  if (steps_.versions() && (is_forward || is_backward(task.kind)))
    for (const bool expert : {false, true})
      stage.parameters->run(expert).use_version(steps_.versions()->version_for(task.microbatch));
  if (is_forward) stages_.move_input(stage, task.microbatch);
  if (is_backward(task.kind)) stages_.move_gradient(stage, task.microbatch);
}

void TrainingActions::end_task(const RunTask& task) {
  if (task.stage < 0 || task.microbatch < 0) return;
  sharded_.end_pass(task.id, task.kind);
  RankStage& stage = stages_.of(task);
  const auto state = [&]() -> MicrobatchState& { return stage.microbatches.at(task.microbatch); };
  switch (task.kind) {
    case TaskKind::kForward:
      end_steps(task);
      if (runnable_.ends_pass(task)) {
        losses_.add(state(), steps_.in_graph(task.microbatch));
        if (held_out_ != nullptr) keep_output_only(stage, state());
      }
      break;
    case TaskKind::kBackwardInput:
      end_steps(task);
      break;
    case TaskKind::kBackward:
    case TaskKind::kBackwardWeight:
      end_steps(task);
      if (runnable_.ends_pass(task)) end_backward(stage, state());
      break;
    case TaskKind::kSend:
      if (held_out_ != nullptr)
        stage.microbatches.erase(task.microbatch);
      else if (runnable_.carries_gradient(task.id))
        state().erase(stage.input, Form::kGradient);
      else if (state().output_is_sent)
        state().erase(stage.output, Form::kValue);
      break;
    default:
      break;
  }
}

/// For the next stage; validation has no backward pass.
void TrainingActions::keep_output_only(const RankStage& stage, MicrobatchState& state) {
  OwnedMatrix* output = stage.next < 0 ? nullptr : state.find(stage.output, Form::kValue);
  OwnedMatrix kept = output == nullptr ? OwnedMatrix() : std::move(*output);
  state = MicrobatchState();
  if (!kept.empty()) state.tensors[{stage.output.value, Form::kValue}] = std::move(kept);
}

/// Keeps the gradient for the previous stage only.
void TrainingActions::end_backward(RankStage& stage, MicrobatchState& state) {
  OwnedMatrix* gradient = stage.previous < 0 ? nullptr : state.find(stage.input, Form::kGradient);
  OwnedMatrix kept = gradient == nullptr ? OwnedMatrix() : std::move(*gradient);
  state = MicrobatchState();
  if (!kept.empty()) state.tensors[{stage.input.value, Form::kGradient}] = std::move(kept);
}

OperatorPass TrainingActions::pass_of(const Task& task, const LayerStep& step) {
  RankStage& stage = stages_.of(task);
  OperatorPass pass =
      pass_over(stage, rows_.at(task.microbatch), stage.microbatches.at(task.microbatch), step);
  pass.step = static_cast<int>(steps_.of(task.microbatch));
  return pass;
}

OperatorPass TrainingActions::pass_over(RankStage& stage, const TokenRows& rows,
                                        MicrobatchState& state, const LayerStep& step) {
  return {.rank = rank_,
          .sharding = rank_.sharding_of(step.place.layer),
          .parameters = *stage.parameters,
          .rows = rows,
          .state = state,
          .id = step.place.op,
          .loss_scale = loss_scale_of(rank_.strategy, steps_),
          .options = options_,
          .step = static_cast<int>(steps_.first()),
          .drops = held_out_ == nullptr,
          .expert_nodes = expert_nodes_,
          .buffers = step.buffers,
          .next_buffers = step.next_buffers};
}

void TrainingActions::compute(const RunTask& task, const LayerStep& step, const Kernel& kernel) {
  if (task.kind == TaskKind::kOptimizer) {
    if (servers_) return servers_->update(steps_.first());
    if (steps_.versions()) return update_without_flush(task);
    return task.stream == Stream::kHost ? update_on_host(task) : update_parameters(task);
  }
  if (runnable_.follows_pass(task)) return compute_loss_of_all_devices(task, step, kernel);
  begin_layer_step(task, step);
  const OperatorId op = step.place.op;
  if (op != last_op_ || kernel.phase != last_phase_) {
    last_op_ = op;
    last_phase_ = kernel.phase;
    OperatorPass pass = pass_of(task, step);
    meshwright::compute(pass, kernel.phase);
  }
  // Here rather than with the next layer, so that its check counts as part of the layer's kernels.
  if (is_last_of_layer(task, step)) end_layer(task);
}

bool TrainingActions::is_last_of_layer(const Task& task, const LayerStep& step) const {
  const std::vector<LayerStep>& steps = runnable_.steps_of(task);
  const std::size_t next = static_cast<std::size_t>(step.index) + 1;
  return next == steps.size() || steps[next].place.layer != step.place.layer;
}

Ticks TrainingActions::communicate(const RunTask& task, const LayerStep& step,
                                   const Collective& collective, Ticks ready) {
  begin_layer_step(task, step);
  last_op_ = OperatorId(-1);
  OperatorPass pass = pass_of(task, step);
  Collective here = collective;
  here.tensor = step.place.tensor;
  const Channel channel = channel_of(collective.axis);
  RankGroup group(rank_.communicator, members_of(rank_.groups, collective),
                  {channel, next_tag_[static_cast<std::size_t>(channel)]++});
  return meshwright::communicate(pass, here, group, ready);
}

/// Frees the buffers that the previous step has consumed, and those whose last reader is done.
void TrainingActions::begin_layer_step(const Task& task, const LayerStep& step) {
  MicrobatchState& state = stages_.of(task).microbatches.at(task.microbatch);
  if (step.index > 0)
    free_consumed(state, runnable_.steps_of(task)[static_cast<std::size_t>(step.index) - 1]);
  if (step.place.layer != current_layer_) end_layer(task);
  current_layer_ = step.place.layer;
  for (const BufferEvent& event : events_of(step))
    if (event.action == BufferAction::kRelease) state.erase(event.buffer);
}

void TrainingActions::end_layer(const Task& task) {
  if (task.kind == TaskKind::kForward && current_layer_.value >= 0)
    checks_.check_layer(stages_.of(task).microbatches.at(task.microbatch), current_layer_,
                        steps_.of(task.microbatch));
  current_layer_ = LayerId(-1);
}

void TrainingActions::end_steps(const Task& task) {
  if (runnable_.follows_pass(task)) return;
  end_layer(task);
  RankStage& stage = stages_.of(task);
  MicrobatchState& state = stage.microbatches.at(task.microbatch);
  if (const std::vector<LayerStep>& steps = runnable_.steps_of(task); !steps.empty())
    free_consumed(state, steps.back());
  for (const BufferEvent& event : runnable_.last_buffers_of(task)) {
    if (event.action == BufferAction::kRelease) state.erase(event.buffer);
    if (event.action == BufferAction::kConsume &&  // by its send
        event.buffer == BufferKey{stage.output.value, Form::kValue})
      state.output_is_sent = true;
  }
}

// ---- messages between stages ----

std::span<const std::byte> TrainingActions::outgoing(const RunTask& send) {
  RankStage& stage = stages_.of(send);
  MicrobatchState& state = stage.microbatches.at(send.microbatch);
  OwnedMatrix* message = runnable_.carries_gradient(send.id)
                             ? state.find(stage.input, Form::kGradient)
                             : state.find(stage.output, Form::kValue);
  MW_CHECK(message != nullptr);
  return message->bytes();
}

std::span<std::byte> TrainingActions::incoming(const RunTask& receive) {
  RankStage& stage = stages_.of(receive);
  const bool gradient = runnable_.carries_gradient(receive.id);
  const TensorId tensor = gradient ? stage.output : stage.input;
  MicrobatchState& state = stage.microbatches[receive.microbatch];
  OwnedMatrix& message = state.tensors[{tensor.value, gradient ? Form::kGradient : Form::kValue}];
  const LiveBuffers sizes(rank_.model, rank_.shard);
  const HeldBuffer held = gradient ? sizes.gradient_of(tensor) : sizes.value_of(tensor);
  message = rank_.matrix(held.what, rank_.tokens.cut, rank_.activation(tensor).width, rank_.dtype);
  MW_CHECK(held.bytes == Bytes(std::ssize(message.bytes())));
  return message.bytes();
}

}  // namespace meshwright
