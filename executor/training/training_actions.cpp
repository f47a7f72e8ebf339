#include "executor/training/training_actions.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/lowering/lower.hpp"
#include "core/plan/placement.hpp"
#include "executor/operators/sequence_pieces.hpp"

namespace meshwright {
namespace {

/// An update uses the mean over its own tokens: those of one worker with asynchronous servers, or
/// of a few micro-batches with flushless schedules.
float loss_scale_of(const Strategy& strategy, const std::optional<WeightVersions>& versions) {
  const bool alone = strategy.data_parallelism.kind == DataParallelKind::kAsyncParameterServer;
  std::int64_t updates = alone ? strategy.degrees.data : 1;
  if (versions) updates = microbatch_count(strategy) / versions->microbatches_per_batch;
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
      exchange_(rank_),
      expert_nodes_(expert_nodes_of(runnable.graph())),
      clip_scale_(rank_.numbers(1)),
      visits_(rank_.model, [this](LayerId layer, OperatorId op, Visit visit) {
        leave_operator(layer, op, visit);
      }) {
  set_clip_scale(1);
  if (updates_without_flush(rank_.strategy))
    versions_ = weight_versions_of(rank_.strategy, PipelineRankId(rank_.at.pipeline));
  if (rank_.strategy.zero >= 3) gathered_ = GatheredWeights(runnable, rank_.rank);
  if (rank_.strategy.zero >= 2) reduced_behind_ = reduced_after(runnable, rank_.rank);
  const Placement placement = placement_of(plan);
  const std::vector<std::vector<LayerId>> layers = layers_of_stages(plan, model);
  find_shared_table(placement);
  stages_.resize(layers.size());
  for (std::size_t s = 0; s < layers.size(); ++s) {
    stages_[s].layers = layers[s];
    stages_[s].holders =
        static_cast<int>(std::count(placement.part_of_stage.begin(), placement.part_of_stage.end(),
                                    placement.part_of_stage[s]));
  }
  find_ends(placement);
  // Embeddings first, since a tied output layer on the same device uses their table.
  for (const bool embeds : {true, false})
    for (std::size_t s = 0; s < layers.size(); ++s)
      if (placement.device_of_stage[s].value == rank_.at.pipeline && !is_apart() &&
          (layers[s].front() == LayerId(0)) == embeds)
        hold(s);
  set_up_whole_models();
}

void TrainingActions::hold(std::size_t stage) {
  Stage& held = stages_[stage];
  held.keeps = StageKeeps(rank_.model, held.layers, rank_.strategy,
                          static_cast<int>(runnable_.part_of_stage(stage)));
  const bool reads_table = rank_.model.tied_embeddings &&
                           held.layers.back().index() + 1 == rank_.model.layers.size() &&
                           held.layers.front() != LayerId(0);
  const auto embedding = std::find_if(stages_.begin(), stages_.end(), [](const Stage& s) {
    return s.parameters && s.layers.front() == LayerId(0);
  });
  const bool table_is_here = reads_table && embedding != stages_.end();
  held.parameters = std::make_unique<StageParameters>(
      rank_, held.layers,
      layouts_of(runnable_, rank_.strategy, rank_.rank, runnable_.part_of_stage(stage)),
      options_.seed, table_is_here ? embedding->parameters.get() : nullptr,
      table_is_here ? word_table() : TensorId(-1));
}

TensorId TrainingActions::word_table() const {
  const auto lookup = static_cast<std::size_t>(rank_.model.layers.front().first_operator);
  return rank_.model.operators[lookup].parameters.front();
}

/// A tied embedding table with copies on the first and the last device.
void TrainingActions::find_shared_table(const Placement& placement) {
  const std::vector<StageId>& route = placement.routes.front();
  const bool apart = placement.device_of_stage[route.front().index()] !=
                     placement.device_of_stage[route.back().index()];
  if (rank_.model.tied_embeddings && placement.routes.size() == 1 && apart)
    shared_table_ = word_table();
}

/// The activation that each stage sends to the next.
void TrainingActions::find_ends(const Placement& placement) {
  const auto here = [&](StageId stage) {
    return placement.device_of_stage[stage.index()].value == rank_.at.pipeline;
  };
  for (const std::vector<StageId>& route : placement.routes)
    for (std::size_t i = 0; i + 1 < route.size(); ++i) {
      Stage& from = stages_[route[i].index()];
      Stage& to = stages_[route[i + 1].index()];
      from.next = route[i + 1].value;
      to.previous = route[i].value;
      from.next_is_here = here(route[i + 1]);
      to.previous_is_here = here(route[i]);
      const Layer& last = rank_.model.layers[from.layers.back().index()];
      const auto end = static_cast<std::size_t>(last.first_operator + last.operator_count - 1);
      from.output = rank_.model.operators[end].outputs.front();
      to.input = from.output;
    }
}

// ---- the step ----

void TrainingActions::begin_step(int step) {
  step_ = step;
  losses_.clear();
  new_losses_.clear();
  unchecked_layers_.clear();
  rows_.clear();
  next_tag_ = {};
  norm_is_known_ = false;
  for (Stage& stage : stages_) {
    stage.microbatches.clear();
    stage.summed_over_tensor = false;
    if (stage.parameters) stage.parameters->clear_gradients();
  }
}

TokenRows TrainingActions::rows_of_microbatch(int microbatch) const {
  const Strategy& s = rank_.strategy;
  const std::int64_t step = step_ + step_in_graph(microbatch);
  const std::int64_t of_step = microbatch - step_in_graph(microbatch) * microbatch_count(s);
  TokenRows rows;
  rows.first_sequence =
      (rank_.at.data * microbatch_count(s) + of_step) * std::int64_t{s.micro_batch};
  for (std::int64_t b = 0; b < s.micro_batch; ++b)
    for (const SequencePiece& piece : sequence_pieces(s, rank_.at.context))
      for (std::int64_t t = 0; t < piece.length; ++t) {
        const std::int64_t position = piece.first_position + t;
        const std::int64_t number = (rows.first_sequence + b) * s.sequence_length + position;
        const auto at =
            static_cast<std::size_t>(step * s.global_batch * s.sequence_length + number);
        rows.words.push_back(text_.words[at % text_.words.size()]);
        rows.targets.push_back(text_.words[(at + 1) % text_.words.size()]);
        rows.positions.push_back(static_cast<std::int32_t>(position));
        rows.numbers.push_back(number);
      }
  rows.token_types.assign(rows.words.size(), 0);
  return rows;
}

// ---- tasks ----

void TrainingActions::begin_task(const Task& task) {
  last_op_ = OperatorId(-1);
  stage_at_work_ = task.stage;
  microbatch_at_work_ = task.microbatch;
  if (task.kind == TaskKind::kOptimizer) let_go_of_reduced();
  if (task.stage < 0 || task.microbatch < 0) return;
  open_gradients_behind(task);
  if (!rows_.contains(task.microbatch))
    rows_[task.microbatch] = rows_of_microbatch(task.microbatch);
  Stage& stage = stage_of(task);
  if (!runnable_.begins_pass(task)) return;
  if (versions_ && (task.kind == TaskKind::kForward || is_backward(task.kind)))
    use_weights_for(task);
  if (task.kind == TaskKind::kForward) begin_forward(task, stage);
  if (is_backward(task.kind)) begin_backward(task, stage);
}

void TrainingActions::open_gradients_behind(const Task& task) {
  const auto found = reduced_behind_.find(id_of(task).value);
  if (found == reduced_behind_.end()) return;
  for (const ParameterRange& range : found->second) {
    ParameterRun& run = stage_of_part(range.part).parameters->run(range.expert);
    if (run.layout().shards_gradients) run.open_gradients(run.piece_at(range.first));
  }
}

/// If the previous stage is on this device, its output is moved.
void TrainingActions::begin_forward(const Task& task, Stage& stage) {
  MicrobatchState& state = stage.microbatches[task.microbatch];
  if (!stage.previous_is_here) return;
  Stage& maker = stages_[static_cast<std::size_t>(stage.previous)];
  MicrobatchState& made = maker.microbatches.at(task.microbatch);
  OwnedMatrix& slot = state.tensors[{stage.input.value, Form::kValue}];
  slot = std::move(*made.find(stage.input, Form::kValue));
  made.erase(stage.input, Form::kValue);
}

void TrainingActions::begin_backward(const Task& task, Stage& stage) {
  if (!stage.next_is_here) return;
  Stage& reader = stages_[static_cast<std::size_t>(stage.next)];
  MicrobatchState& made = reader.microbatches.at(task.microbatch);
  MicrobatchState& state = stage.microbatches.at(task.microbatch);
  state.tensors[{stage.output.value, Form::kGradient}] =
      std::move(*made.find(stage.output, Form::kGradient));
  made.erase(stage.output, Form::kGradient);
}

OperatorId TrainingActions::operator_in(LayerId layer, OperatorId source) const {
  const Layer& here = rank_.model.layers[layer.index()];
  for (const Layer& first : rank_.model.layers)
    if (first.layer_class == here.layer_class)
      return OperatorId(source.value - first.first_operator + here.first_operator);
  MW_CHECK(false);
}

OperatorPass TrainingActions::pass_of(const Task& task, OperatorId op) {
  Stage& stage = stage_of(task);
  OperatorPass pass =
      pass_over(stage, rows_.at(task.microbatch), stage.microbatches.at(task.microbatch), op);
  pass.step += step_in_graph(task.microbatch);
  return pass;
}

OperatorPass TrainingActions::pass_over(Stage& stage, const TokenRows& rows, MicrobatchState& state,
                                        OperatorId op) {
  return {.rank = rank_,
          .parameters = *stage.parameters,
          .rows = rows,
          .state = state,
          .id = op,
          .loss_scale = loss_scale_of(rank_.strategy, versions_),
          .options = options_,
          .step = static_cast<int>(step_),
          .expert_nodes = expert_nodes_};
}

void TrainingActions::compute(const Task& task, const LayerStep& step, const Kernel& kernel) {
  if (task.kind == TaskKind::kOptimizer) {
    if (has_servers()) return update_as_server();
    if (versions_) return update_without_flush(task);
    return task.stream == Stream::kHost ? update_on_host(task) : update_parameters();
  }
  if (runnable_.follows_pass(task)) return compute_loss_of_all(task, kernel);
  const OperatorId op = operator_in(step.layer, kernel.source);
  visits_.go_to(step.layer, op, visit_of(task.kind, kernel.phase));
  if (op == last_op_ && kernel.phase == last_phase_) return;
  last_op_ = op;
  last_phase_ = kernel.phase;
  OperatorPass pass = pass_of(task, op);
  meshwright::compute(pass, kernel.phase);
}

Ticks TrainingActions::communicate(const Task& task, const LayerStep& step,
                                   const Collective& collective, Ticks ready) {
  const OperatorId op = operator_in(step.layer, collective.source);
  visits_.go_to(step.layer, op, visit_of(task.kind, collective.phase));
  last_op_ = OperatorId(-1);
  const Operator& first = rank_.model.operators[collective.source.index()];
  OperatorPass pass = pass_of(task, op);
  // The tensor of this layer that corresponds to the collective's in the first layer of the class.
  Collective here = collective;
  const auto translate = [&](const std::vector<TensorId>& from, const std::vector<TensorId>& to) {
    for (std::size_t i = 0; i < from.size(); ++i)
      if (from[i] == collective.tensor) here.tensor = to[i];
  };
  translate(first.inputs, pass.op().inputs);
  translate(first.outputs, pass.op().outputs);
  const Channel channel = channel_of(collective.axis);
  RankGroup group(rank_.communicator, members_of(rank_.groups, collective),
                  {channel, next_tag_[static_cast<std::size_t>(channel)]++});
  return meshwright::communicate(pass, here, group, ready);
}

void TrainingActions::leave_operator(LayerId layer, OperatorId op, Visit visit) {
  Stage& stage = stages_[static_cast<std::size_t>(stage_at_work_)];
  MicrobatchState& state = stage.microbatches.at(microbatch_at_work_);
  const Layer& l = rank_.model.layers[layer.index()];
  const bool is_last = op.value == l.first_operator + l.operator_count - 1;
  if (visit == Visit::kForward && is_last) check_layer(state, layer);
  for (const ActivationBuffer& dead : read_no_more(rank_.model, stage.keeps, layer, op, visit))
    state.erase(dead);
}

/// Accumulated later by settle(), to avoid a wait for the device here.
void TrainingActions::note_loss(MicrobatchState& state, int step) {
  if ((rank_.at.tensor != 0 && !state.loss_of_own_rows) || state.loss.empty()) return;
  new_losses_.push_back({step, std::move(state.loss)});
}

TrainingActions::Loss TrainingActions::loss_of(int step) const {
  const auto found = losses_.find(step);
  return found == losses_.end() ? Loss() : found->second;
}

void TrainingActions::settle() {
  check_layers_of_queue();
  for (NewLoss& of_tokens : new_losses_) {
    Loss& noted = losses_[of_tokens.step];
    for (const float loss : rank_.on_host(of_tokens.losses.floats()))
      noted.sum += static_cast<double>(loss);
    noted.tokens += of_tokens.losses.columns();
  }
  new_losses_.clear();
}

/// Frees the weights gathered for these layers only, and the buffers of gradients reduced during
/// the pass.
void TrainingActions::end_use_of_weights(const Task& task) {
  for (const GatheredWeights::Piece& piece : gathered_.last_used_by(id_of(task))) {
    ParameterRun& run = stage_of_part(piece.range.part).parameters->run(piece.range.expert);
    if (run.layout().shards_weights) run.close_weights(run.piece_at(piece.range.first), piece.use);
  }
  if (task.kind == TaskKind::kBackward || task.kind == TaskKind::kBackwardWeight)
    let_go_of_reduced();
}

void TrainingActions::let_go_of_reduced() {
  for (Stage& stage : stages_)
    if (stage.parameters)
      for (const bool expert : {false, true})
        stage.parameters->run(expert).free_reduced_gradients();
}

void TrainingActions::end_task(const Task& task) {
  if (task.stage < 0 || task.microbatch < 0) return;
  end_use_of_weights(task);
  Stage& stage = stage_of(task);
  switch (task.kind) {
    case TaskKind::kForward:
      visits_.finish();
      if (runnable_.ends_pass(task))
        note_loss(stage.microbatches.at(task.microbatch), step_in_graph(task.microbatch));
      break;
    case TaskKind::kBackwardInput:
      visits_.finish();
      break;
    case TaskKind::kBackward:
    case TaskKind::kBackwardWeight: {
      visits_.finish();
      if (!runnable_.ends_pass(task)) break;
      MicrobatchState& state = stage.microbatches.at(task.microbatch);
      OwnedMatrix* gradient =
          stage.previous < 0 ? nullptr : state.find(stage.input, Form::kGradient);
      OwnedMatrix handed_on = gradient == nullptr ? OwnedMatrix() : std::move(*gradient);
      state = MicrobatchState();
      if (!handed_on.empty())
        state.tensors[{stage.input.value, Form::kGradient}] = std::move(handed_on);
      break;
    }
    case TaskKind::kSend: {
      MicrobatchState& state = stage.microbatches.at(task.microbatch);
      if (runnable_.carries_gradient(task))
        state.erase(stage.input, Form::kGradient);
      else if (!stage.keeps.keeps(stage.output))
        state.erase(stage.output, Form::kValue);
      break;
    }
    default:
      break;
  }
}

// ---- messages between stages ----

std::span<const std::byte> TrainingActions::outgoing(const Task& send) {
  Stage& stage = stage_of(send);
  MicrobatchState& state = stage.microbatches.at(send.microbatch);
  OwnedMatrix* message = runnable_.carries_gradient(send) ? state.find(stage.input, Form::kGradient)
                                                          : state.find(stage.output, Form::kValue);
  MW_CHECK(message != nullptr);
  return message->bytes();
}

std::span<std::byte> TrainingActions::incoming(const Task& receive) {
  Stage& stage = stage_of(receive);
  const bool gradient = runnable_.carries_gradient(receive);
  const TensorId tensor = gradient ? stage.output : stage.input;
  MicrobatchState& state = stage.microbatches[receive.microbatch];
  OwnedMatrix& message = state.tensors[{tensor.value, gradient ? Form::kGradient : Form::kValue}];
  message = rank_.matrix(gradient ? MemoryClass::kWorking : MemoryClass::kActivations,
                         rank_.tokens.cut, rank_.activation(tensor).width, rank_.dtype);
  return message.bytes();
}

}  // namespace meshwright
