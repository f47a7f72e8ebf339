#include "tests/simulator/graph_builder.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/check.hpp"

namespace meshwright {

int GraphBuilder::add_rank(int multiplicity) {
  const auto number = static_cast<std::int32_t>(graph.ranks.size());
  graph.ranks.push_back({.rank = RankId(number),
                         .coordinate = {.pipeline = number},
                         .device = DeviceId(number),
                         .multiplicity = multiplicity,
                         .resident = {}});
  return number;
}

WorkId GraphBuilder::add_compute(TaskKind kind, Ticks duration) {
  Work work;
  work.kind = kind;
  graph.works.push_back(work);
  WorkPrice price;
  price.duration = duration;
  price.kernels[static_cast<std::size_t>(KernelKind::kGemm)] = duration;
  prices.push_back(price);
  return WorkId(graph.works.size() - 1);
}

WorkId GraphBuilder::add_message(Bytes bytes, Ticks occupancy, Ticks latency) {
  for (const TaskKind kind : {TaskKind::kSend, TaskKind::kReceive}) {
    Work work;
    work.kind = kind;
    work.transfer.bytes = bytes;
    graph.works.push_back(work);
    WorkPrice price;
    price.duration = occupancy;
    price.latency = latency;
    prices.push_back(price);
  }
  return WorkId(graph.works.size() - 2);
}

WorkId GraphBuilder::add_collective_work(Axis axis, Ticks duration) {
  Work work;
  work.kind = TaskKind::kCollective;
  work.collective.axis = axis;
  graph.works.push_back(work);
  WorkPrice price;
  price.duration = duration;
  prices.push_back(price);
  return WorkId(graph.works.size() - 1);
}

TaskId GraphBuilder::add_task(WorkId work, const TaskPlace& place,
                              const std::vector<TaskId>& after) {
  graph.tasks.push_back({.work = work,
                         .rank = place.rank,
                         .microbatch = place.microbatch,
                         .stage = static_cast<std::int16_t>(place.stage),
                         .kind = graph.works[work.index()].kind,
                         .stream = place.stream});
  graph.dependencies.insert(graph.dependencies.end(), after.begin(), after.end());
  graph.dependency_begin.push_back(static_cast<std::int32_t>(graph.dependencies.size()));
  return TaskId(graph.tasks.size() - 1);
}

TaskId GraphBuilder::add_receive(TaskId send, const TaskPlace& place) {
  const WorkId work(graph.tasks[send.index()].work.value + 1);
  const TaskId receive = add_task(work, place);
  graph.tasks[receive.index()].partner = send.value;
  return receive;
}

GraphBuilder::Transfer GraphBuilder::add_transfer(WorkId message, int from, int to,
                                                  const std::vector<TaskId>& after) {
  const TaskId send = add_task(message, {.rank = from, .stream = Stream::kSendNext}, after);
  return {send, add_receive(send, {.rank = to, .stream = Stream::kReceivePrevious})};
}

std::vector<TaskId> GraphBuilder::add_collective(WorkId work, Stream stream,
                                                 const std::vector<int>& ranks,
                                                 const std::vector<std::vector<TaskId>>& after) {
  MW_CHECK(after.size() == ranks.size());
  std::vector<TaskId> members;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    members.push_back(add_task(
        work, {.rank = ranks[i], .stream = stream, .stage = -1, .microbatch = -1}, after[i]));
    graph.tasks.back().partner = static_cast<std::int32_t>(graph.collectives.size());
  }
  graph.collectives.push_back(
      {.first = members.front().value, .count = static_cast<std::int32_t>(members.size())});
  return members;
}

namespace {

/// Adds the actions of all devices round-robin, each as soon as its inputs exist.
class PipelineBuilder {
 public:
  PipelineBuilder(const Schedule& schedule, const StageTimes& times, const MessageCost& message)
      : schedule_(schedule),
        placement_(schedule.placement),
        outputs_(placement_.device_of_stage.size() *
                 static_cast<std::size_t>(schedule.microbatch_count) * 2) {
    for (int d = 0; d < placement_.devices; ++d) builder_.add_rank();
    message_ = builder_.add_message(message.bytes, message.occupancy, message.latency);
    for (std::size_t s = 0; s < placement_.device_of_stage.size(); ++s) {
      const Ticks whole = times.backward_input[s] + times.backward_weight[s];
      works_.push_back(builder_.add_compute(TaskKind::kForward, times.forward[s]));
      works_.push_back(builder_.add_compute(TaskKind::kBackward, whole));
      works_.push_back(builder_.add_compute(TaskKind::kBackwardInput, times.backward_input[s]));
      works_.push_back(builder_.add_compute(TaskKind::kBackwardWeight, times.backward_weight[s]));
    }
  }

  GraphBuilder build() {
    std::vector<std::size_t> next(schedule_.orders.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t d = 0; d < next.size(); ++d)
        if (next[d] < schedule_.orders[d].size() && put(schedule_.orders[d][next[d]])) {
          ++next[d];
          moved = true;
        }
    }
    for (std::size_t d = 0; d < next.size(); ++d) MW_CHECK(next[d] == schedule_.orders[d].size());
    return std::move(builder_);
  }

 private:
  /// The consumer's task after which the output of a pass is available.
  std::optional<TaskId>& output(StageId stage, MicrobatchId microbatch, bool forward) {
    return outputs_[(stage.index() * static_cast<std::size_t>(schedule_.microbatch_count) +
                     microbatch.index()) *
                        2 +
                    (forward ? 0 : 1)];
  }

  bool put(const Action& action) {
    MW_CHECK(!action.overlaps_next);
    const auto& route = placement_.routes[static_cast<std::size_t>(
        schedule_.route_of_microbatch[action.microbatch.index()])];
    const auto at = std::find(route.begin(), route.end(), action.stage);
    MW_CHECK(at != route.end());
    const bool forward = action.pass == Pass::kForward;
    std::vector<TaskId> after;
    if (forward && at != route.begin()) {
      if (!output(*(at - 1), action.microbatch, true)) return false;
      after = {*output(*(at - 1), action.microbatch, true)};
    } else if (!forward && action.pass != Pass::kBackwardWeight && at + 1 != route.end()) {
      if (!output(*(at + 1), action.microbatch, false)) return false;
      after = {*output(*(at + 1), action.microbatch, false)};
    }
    const int device = placement_.device_of_stage[action.stage.index()].value;
    const std::size_t pass = static_cast<std::size_t>(action.pass);
    const TaskId task = builder_.add_task(
        works_[action.stage.index() * 4 + pass],
        {.rank = device, .stage = action.stage.value, .microbatch = action.microbatch.value},
        after);
    if (forward && at + 1 != route.end()) pass_on(action, task, *(at + 1));
    if (!forward && action.pass != Pass::kBackwardWeight && at != route.begin())
      pass_on(action, task, *(at - 1));
    return true;
  }

  void pass_on(const Action& action, TaskId task, StageId to) {
    const bool forward = action.pass == Pass::kForward;
    const int devices = placement_.devices;
    const int from_device = placement_.device_of_stage[action.stage.index()].value;
    const int to_device = placement_.device_of_stage[to.index()].value;
    std::optional<TaskId>& result = output(action.stage, action.microbatch, forward);
    result = task;
    if (from_device == to_device) return;
    const bool is_next = to_device == (from_device + 1) % devices;
    const bool is_previous = from_device == (to_device + 1) % devices;
    MW_CHECK(is_next || is_previous);
    const bool next = forward ? is_next : !is_previous;
    const TaskId send =
        builder_.add_task(message_,
                          {.rank = from_device,
                           .stream = next ? Stream::kSendNext : Stream::kSendPrevious,
                           .stage = action.stage.value,
                           .microbatch = action.microbatch.value},
                          {task});
    result = builder_.add_receive(send,
                                  {.rank = to_device,
                                   .stream = next ? Stream::kReceivePrevious : Stream::kReceiveNext,
                                   .stage = to.value,
                                   .microbatch = action.microbatch.value});
  }

  const Schedule& schedule_;
  const Placement& placement_;
  GraphBuilder builder_;
  WorkId message_;
  std::vector<WorkId> works_;                   ///< [stage, pass]
  std::vector<std::optional<TaskId>> outputs_;  ///< [stage, micro-batch, forward or backward]
};

}  // namespace

GraphBuilder pipeline_graph(const Schedule& schedule, const StageTimes& times,
                            const MessageCost& message) {
  return PipelineBuilder(schedule, times, message).build();
}

Schedule schedule_of(std::string_view name, const PipelineSize& size) {
  ScheduleRequest request;
  request.devices = size.devices;
  request.microbatches = size.microbatches;
  request.chunks = size.chunks;
  const ScheduleRule* rule = find_schedule_rule(name);
  MW_CHECK(rule != nullptr);
  MW_CHECK(!rule->problem(request));
  return rule->generate(request);
}

}  // namespace meshwright
