// The passes of one pipeline in the order of its schedule, with the messages between stages and the
// collectives that passes wait for or cause. One walk appends all of them: a stream runs its tasks
// in the order of the graph, so what is ready first has to be appended first.
#include "core/lowering/pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "core/base/check.hpp"
#include "core/lowering/data_parallel.hpp"
#include "core/lowering/output_layer.hpp"
#include "core/lowering/passes.hpp"
#include "core/lowering/unfold.hpp"
#include "core/lowering/without_flush.hpp"
#include "core/plan/job_groups.hpp"
#include "core/plan/weight_versions.hpp"

namespace meshwright {
namespace {

constexpr std::int32_t kNotYet = -1;   ///< the input has not been produced yet
constexpr std::int32_t kNoInput = -2;  ///< the first stage reads tokens, the last computes the loss

/// Advances every device through its order while its inputs are available, round robin, so that the
/// tasks are in topological order.
class PipelineWriter {
 public:
  explicit PipelineWriter(LoweringContext& context)
      : context_(context),
        schedule_(context.schedule),
        placement_(schedule_.placement),
        graph_(context.graph()),
        stages_(placement_.device_of_stage.size()),
        microbatches_(static_cast<std::size_t>(schedule_.microbatch_count)) {
    const std::size_t slots = stages_ * microbatches_;
    activation_.assign(slots, kNotYet);
    gradient_.assign(slots, kNotYet);
    done_.assign(slots, 0);
    tasks_.last_of_stage.assign(stages_, -1);
    tasks_.completes_unit.resize(stages_);
    if (has_units(context)) units_.emplace(context);
    if (updates_without_flush(context.strategy)) updates_.emplace(context);
    if (schedule_.output_barriers > 0) output_.emplace(context);
    blocking_gradient_.resize(static_cast<std::size_t>(placement_.devices));
    tasks_.last_of_device.assign(static_cast<std::size_t>(placement_.devices), -1);
    link_routes();
    reserve();
  }

  PipelineTasks run() {
    std::vector<std::size_t> next(schedule_.orders.size(), 0);
    bool advanced = true;
    while (advanced) {
      advanced = false;
      for (std::size_t d = 0; d < next.size(); ++d)
        while (next[d] < schedule_.orders[d].size()) {
          const std::size_t end = end_of_group(schedule_.orders[d], next[d]);
          if (!is_ready({schedule_.orders[d].data() + next[d], end - next[d]})) break;
          emit({schedule_.orders[d].data() + next[d], end - next[d]}, static_cast<int>(d));
          next[d] = end;
          advanced = true;
        }
    }
    report_deadlock(next);
    return std::move(tasks_);
  }

 private:
  enum Done : std::uint8_t { kForwardDone = 1, kInputGradientDone = 2 };

  std::size_t slot(StageId stage, MicrobatchId microbatch) const {
    return stage.index() * microbatches_ + microbatch.index();
  }
  std::size_t route_slot(MicrobatchId microbatch, StageId stage) const {
    const auto route = static_cast<std::size_t>(schedule_.route_of_microbatch[microbatch.index()]);
    return route * stages_ + stage.index();
  }

  /// Neighbors of every stage on every route; the first and last stages need no message.
  void link_routes() {
    next_stage_.assign(placement_.routes.size() * stages_, -1);
    previous_stage_.assign(placement_.routes.size() * stages_, -1);
    messages_.assign(2 * placement_.routes.size() * stages_, {});
    for (std::size_t r = 0; r < placement_.routes.size(); ++r)
      for (std::size_t i = 0; i + 1 < placement_.routes[r].size(); ++i) {
        const StageId from = placement_.routes[r][i], to = placement_.routes[r][i + 1];
        next_stage_[r * stages_ + from.index()] = to.value;
        previous_stage_[r * stages_ + to.index()] = from.value;
      }
    for (std::size_t m = 0; m < microbatches_; ++m) {
      const auto& route =
          placement_.routes[static_cast<std::size_t>(schedule_.route_of_microbatch[m])];
      activation_[slot(route.front(), MicrobatchId(m))] = kNoInput;
      if (schedule_.output_barriers == 0) gradient_[slot(route.back(), MicrobatchId(m))] = kNoInput;
    }
  }

  void reserve() {
    std::size_t actions = 0;
    for (const auto& order : schedule_.orders) actions += order.size();
    const std::size_t messages = placement_.devices > 1 ? 4 * stages_ * microbatches_ : 0;
    graph_.tasks.reserve(actions + messages + 8 * tasks_.last_of_device.size());
    graph_.dependency_begin.reserve(graph_.tasks.capacity() + 1);
    graph_.dependencies.reserve(graph_.tasks.capacity());
  }

  static std::size_t end_of_group(std::span<const Action> order, std::size_t begin) {
    while (order[begin].overlaps_next && begin + 1 < order.size()) ++begin;
    return begin + 1;
  }

  std::int32_t input_of(const Action& action) const {
    switch (action.pass) {
      case Pass::kForward:
        return activation_[slot(action.stage, action.microbatch)];
      case Pass::kBackward:
      case Pass::kBackwardInput:
        return gradient_[slot(action.stage, action.microbatch)];
      case Pass::kOutputScores:
      case Pass::kOutputGradient:
        return output_->input_of(action);
      case Pass::kBackwardWeight:
        break;
    }
    return kNoInput;
  }

  /// The barrier of the sharded output layer that the next pass of the device waits for.
  std::int32_t barrier_before_next(int device) const {
    const auto& gradient = blocking_gradient_[static_cast<std::size_t>(device)];
    return gradient ? output_->barrier_after(*gradient) : kNoInput;
  }

  bool is_ready(std::span<const Action> group) const {
    if (barrier_before_next(device_of(group.front().stage)) == kNotYet) return false;
    return std::all_of(group.begin(), group.end(), [&](const Action& action) {
      const std::uint8_t done = done_[slot(action.stage, action.microbatch)];
      if (action.pass == Pass::kBackwardWeight && (done & kInputGradientDone) == 0) return false;
      const bool goes_back = action.pass == Pass::kBackward || action.pass == Pass::kBackwardInput;
      if (goes_back && (done & kForwardDone) == 0) return false;
      return input_of(action) != kNotYet;
    });
  }

  /// The group starts when the inputs of all its passes are available; its outputs are available
  /// when all of them have ended.
  void emit(std::span<const Action> group, int device) {
    inputs_.clear();
    for (const Action& action : group)
      if (const std::int32_t input = input_of(action); input >= 0) inputs_.emplace_back(input);
    if (const std::int32_t barrier = barrier_before_next(device); barrier >= 0)
      inputs_.emplace_back(barrier);
    blocking_gradient_[static_cast<std::size_t>(device)].reset();
    const std::size_t begin = graph_.tasks.size();
    for (const Action& action : group) {
      append_compute(action, device);
      inputs_.clear();  // the first task waits for all inputs
    }
    const bool are_whole = graph_.tasks.size() - begin == group.size();  // not split into units
    if (group.size() == 2 && are_whole && !context_.memory.empty())
      hold_buffers_of_pair(group, begin);
    const TaskId last(tasks_.last_of_device[static_cast<std::size_t>(device)]);
    for (const Action& action : group) deliver(action, last);
    for (const Action& action : group)
      if (updates_ && action.pass == Pass::kBackward) updates_->append_after(action, device, last);
  }

  /// Memory of an overlapped pair: received tensors are held from the start of the first pass, sent
  /// tensors until the end of the second.
  void hold_buffers_of_pair(std::span<const Action> pair, std::size_t begin) {
    Task &first = graph_.tasks[begin], &second = graph_.tasks[begin + 1];
    const auto [known, is_new] =
        works_of_pair_.try_emplace({first.work.value, second.work.value}, WorkId(-1), WorkId(-1));
    if (is_new) {
      const MemoryAmounts arrives = memory_of(pair[1]).arrives,
                          departs = memory_of(pair[0]).departs;
      Work one = graph_.works[first.work.index()], other = graph_.works[second.work.index()];
      one.acquired += arrives;
      one.acquired += departs;
      one.transient -= departs;
      other.transient -= arrives;
      other.released += arrives;
      other.released += departs;
      known->second = {append_work(graph_, std::move(one)), append_work(graph_, std::move(other))};
    }
    std::tie(first.work, second.work) = known->second;
  }
  const PassMemory& memory_of(const Action& action) const {
    const int part = placement_.part_of_stage[action.stage.index()];
    const SliceMemory& memory = context_.memory[static_cast<std::size_t>(part)];
    switch (action.pass) {
      case Pass::kForward:
        return memory.forward;
      case Pass::kBackward:
        return memory.backward;
      case Pass::kBackwardInput:
        return memory.backward_input;
      case Pass::kBackwardWeight:
      case Pass::kOutputScores:
      case Pass::kOutputGradient:
        break;
    }
    return memory.backward_weight;
  }

  void append_compute(const Action& action, int device) {
    const StageWorks& works = context_.stages[action.stage.index()];
    Task task;
    task.rank = device;
    task.microbatch = action.microbatch.value;
    task.stage = static_cast<std::int16_t>(action.stage.value);
    task.kind = task_kind_of(action.pass);
    task.work = work_of(works, action.pass);
    const bool is_split = units_ && units_->splits(action, device);
    const TaskId id = is_split ? units_->append(action, task, inputs_,
                                                tasks_.completes_unit[action.stage.index()])
                               : append_task(graph_, task, inputs_);
    tasks_.last_of_stage[action.stage.index()] = id.value;
    tasks_.last_of_device[static_cast<std::size_t>(device)] = id.value;
  }

  void deliver(const Action& action, TaskId producer) {
    std::uint8_t& done = done_[slot(action.stage, action.microbatch)];
    const bool forward = action.pass == Pass::kForward;
    if (action.pass == Pass::kBackwardWeight) return;
    if (is_output(action.pass)) return deliver_output(action, producer);
    done = static_cast<std::uint8_t>(done | (forward ? kForwardDone : kInputGradientDone));
    const std::int32_t to =
        (forward ? next_stage_ : previous_stage_)[route_slot(action.microbatch, action.stage)];
    if (to < 0) {
      if (forward && output_) output_->append_after(action, producer);
      return;
    }
    const StageId consumer(to);
    const bool same_device = placement_.device_of_stage[consumer.index()] ==
                             placement_.device_of_stage[action.stage.index()];
    const std::int32_t arrival =
        same_device ? producer.value : append_message(action, consumer, producer).value;
    (forward ? activation_ : gradient_)[slot(consumer, action.microbatch)] = arrival;
  }

  static bool is_output(Pass pass) {
    return pass == Pass::kOutputScores || pass == Pass::kOutputGradient;
  }
  void deliver_output(const Action& action, TaskId producer) {
    output_->append_after(action, producer);
    const StageId last = placement_.routes.front().back();
    gradient_[slot(last, action.microbatch)] = output_->gradient_of(action.microbatch);
    if (schedule_.output_layer_blocks && action.pass == Pass::kOutputGradient)
      blocking_gradient_[action.stage.index()] = action;
  }

  /// Appends a send and its receive; returns the receive.
  TaskId append_message(const Action& action, StageId consumer, TaskId producer) {
    const int from = placement_.device_of_stage[action.stage.index()].value;
    const int to = placement_.device_of_stage[consumer.index()].value;
    const bool forward = action.pass == Pass::kForward;
    const bool goes_next = direction_is_next(from, to, forward);
    const MessageWorks& works = message_works(action, consumer, forward);
    Task send;
    send.work = works.send;
    send.rank = from;
    send.microbatch = action.microbatch.value;
    send.stage = static_cast<std::int16_t>(action.stage.value);
    send.kind = TaskKind::kSend;
    send.stream = goes_next ? Stream::kSendNext : Stream::kSendPrevious;
    const std::array<TaskId, 1> after{producer};
    const TaskId sent = append_task(graph_, send, after);
    Task receive = send;
    receive.work = works.receive;
    receive.rank = to;
    receive.stage = static_cast<std::int16_t>(consumer.value);
    receive.kind = TaskKind::kReceive;
    receive.stream = goes_next ? Stream::kReceivePrevious : Stream::kReceiveNext;
    receive.partner = sent.value;
    return append_task(graph_, receive, {});
  }

  /// With two devices, both neighbors are the same device; activations use the "next" streams,
  /// gradients the "previous" ones.
  bool direction_is_next(int from, int to, bool forward) const {
    const int p = placement_.devices;
    const bool is_next = to == (from + 1) % p, is_previous = from == (to + 1) % p;
    return is_next != is_previous ? is_next : forward;
  }

  struct MessageWorks {
    WorkId send{-1}, receive{-1};
  };

  /// Shared by all micro-batches that cross the same stage boundary.
  const MessageWorks& message_works(const Action& action, StageId to, bool forward) {
    MessageWorks& made =
        messages_[2 * route_slot(action.microbatch, action.stage) + (forward ? 1 : 0)];
    if (made.send.value >= 0) return made;
    const StageId producer_of_activation = forward ? action.stage : to;
    const int part = placement_.part_of_stage[producer_of_activation.index()];
    Work work;
    work.kind = TaskKind::kSend;
    work.transfer.bytes = Bytes(divide_up(context_.boundary[static_cast<std::size_t>(part)].value,
                                          context_.message_slices));
    const Crossing crossing = crossing_of(context_.groups, device_of(action.stage), device_of(to));
    work.transfer.crosses_nodes = crossing.crosses_nodes;
    work.transfer.flows_per_node = crossing.flows_per_node;
    work.node_kind =
        shared_kind_of(context_.groups, std::array{device_of(action.stage), device_of(to)});
    made.send = append_work(graph_, work);
    work.kind = TaskKind::kReceive;
    made.receive = append_work(graph_, std::move(work));
    return made;
  }

  int device_of(StageId stage) const { return placement_.device_of_stage[stage.index()].value; }

  void report_deadlock(const std::vector<std::size_t>& next) const {
    std::vector<Diagnostic> stuck;
    for (std::size_t d = 0; d < next.size(); ++d) {
      if (next[d] == schedule_.orders[d].size()) continue;
      const std::size_t end = end_of_group(schedule_.orders[d], next[d]);
      const std::span<const Action> group(schedule_.orders[d].data() + next[d], end - next[d]);
      stuck.push_back(
          {fmt::format("schedule '{}', device {}", schedule_.name, d),
           fmt::format("stuck before '{}', which waits for {}", to_text(group), awaited(group)),
           "put what it waits for earlier in the order of its device"});
    }
    throw_if_any(stuck);
  }

  std::string awaited(std::span<const Action> group) const {
    for (const Action& action : group) {
      if (is_ready({&action, 1})) continue;
      const std::uint8_t done = done_[slot(action.stage, action.microbatch)];
      const auto text = [&](std::int32_t stage, char letter) {
        return fmt::format("{}{}{}", stage, letter, action.microbatch.value);
      };
      if (action.pass == Pass::kBackwardWeight) return text(action.stage.value, 'I');
      if (action.pass == Pass::kOutputScores) return text(placement_.devices - 1, 'F');
      if (action.pass == Pass::kOutputGradient) return "S on all devices";
      const bool forward = action.pass == Pass::kForward;
      if (!forward && (done & kForwardDone) == 0) return text(action.stage.value, 'F');
      const std::size_t place = route_slot(action.microbatch, action.stage);
      if (!forward && next_stage_[place] < 0) return "the barrier of the output layer";
      return forward ? text(previous_stage_[place], 'F')
                     : text(next_stage_[place], 'B') + " or " + text(next_stage_[place], 'I');
    }
    return "nothing";
  }

  LoweringContext& context_;
  const Schedule& schedule_;
  const Placement& placement_;
  TaskGraph& graph_;
  std::size_t stages_, microbatches_;
  std::vector<std::int32_t> activation_, gradient_;        ///< by slot: producing task, or a state
  std::vector<std::uint8_t> done_;                         ///< by slot: Done flags
  std::vector<std::int32_t> next_stage_, previous_stage_;  ///< by route and stage
  std::vector<MessageWorks> messages_;                     ///< by route, stage and direction
  /// Works of overlapped passes, by the works of the single passes.
  std::map<std::pair<std::int32_t, std::int32_t>, std::pair<WorkId, WorkId>> works_of_pair_;
  std::vector<TaskId> inputs_;
  std::optional<UnitTasks> units_;              ///< if passes are split into units
  std::optional<UpdatesWithoutFlush> updates_;  ///< for flushless schedules
  std::optional<OutputLayerTasks> output_;      ///< if the output layer is sharded
  /// By device: its previous pass if that is a T with a blocking barrier.
  std::vector<std::optional<Action>> blocking_gradient_;
  PipelineTasks tasks_;
};

}  // namespace

void append_pipeline(LoweringContext& context) {
  if (context.strategy.data_parallelism.kind == DataParallelKind::kOneProcess) return;
  context.pipeline = PipelineWriter(context).run();
}

TaskKind task_kind_of(Pass pass) {
  switch (pass) {
    case Pass::kForward:
    case Pass::kOutputScores:
      return TaskKind::kForward;
    case Pass::kBackward:
      return TaskKind::kBackward;
    case Pass::kBackwardInput:
      return TaskKind::kBackwardInput;
    case Pass::kBackwardWeight:
    case Pass::kOutputGradient:
      break;
  }
  return TaskKind::kBackwardWeight;
}

}  // namespace meshwright
