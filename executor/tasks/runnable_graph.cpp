#include "executor/tasks/runnable_graph.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <utility>

#include "core/base/check.hpp"
#include "core/plan/placement.hpp"

namespace meshwright {

RunnableGraph::RunnableGraph(const TaskGraph& graph, const Plan& plan, const CostModel& cost_model)
    : graph_(graph),
      prices_(price_works(graph.parts, graph.works, cost_model)),
      tasks_of_(graph.ranks.size()),
      members_(graph.collectives.size()),
      part_of_stage_(placement_of(plan).part_of_stage),
      receiver_(graph.tasks.size(), -1),
      steps_(graph.works.size()) {
  for (std::size_t i = 0; i < graph.works.size(); ++i)
    if (is_compute(graph.works[i].kind)) list_steps(WorkId(i), cost_model);
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task& task = graph.tasks[i];
    if (task.kind == TaskKind::kReceive)
      receiver_[static_cast<std::size_t>(task.partner)] = static_cast<std::int32_t>(i);
    if (task.kind == TaskKind::kCollective)
      members_[static_cast<std::size_t>(task.partner)].push_back(rank_of(task));
  }
  order_tasks();
}

const WorkProgram& RunnableGraph::program_of(const Task& task) const {
  const std::int32_t program = graph_.works[task.work.index()].program;
  MW_CHECK(program >= 0);
  return graph_.programs[static_cast<std::size_t>(program)];
}

std::span<const BufferEvent> RunnableGraph::last_buffers_of(const Task& task) const {
  const WorkProgram& program = program_of(task);
  const auto end = static_cast<std::int32_t>(program.steps.size());
  const auto first = std::ranges::lower_bound(program.buffers, end, {}, &BufferEvent::step);
  return {first, program.buffers.end()};
}

namespace {

/// Work without layers: the steps of its parts.
std::vector<ProgramStep> steps_of_parts(const TaskGraph& graph, const Work& work) {
  std::vector<ProgramStep> steps;
  for (const WorkPartUse& use : work.parts)
    for (std::int32_t repeat = 0; repeat < use.count; ++repeat)
      for (std::size_t i = 0; i < graph.parts[static_cast<std::size_t>(use.part)].steps.size();
           ++i) {
        ProgramStep step;
        step.layer = LayerId(-1);
        step.op = OperatorId(-1);
        step.part = use.part;
        step.step = static_cast<std::int32_t>(i);
        steps.push_back(step);
      }
  return steps;
}

/// Actions update all parameters at once, so the first kernel stands for all steps.
void join_steps(std::vector<LayerStep>& steps) {
  for (std::size_t i = 1; i < steps.size(); ++i) {
    steps.front().price += steps[i].price;
    steps.front().wait += steps[i].wait;
  }
  steps.resize(1);
}

}  // namespace

void RunnableGraph::list_steps(WorkId id, const CostModel& cost_model) {
  const Work& work = graph_.works[id.index()];
  const CostModel& on_nodes = cost_model.on_nodes(work.node_kind);
  std::map<std::int32_t, std::pair<std::vector<Ticks>, std::vector<Ticks>>> of_part;
  for (const WorkPartUse& use : work.parts) {
    const WorkPart& part = graph_.parts[static_cast<std::size_t>(use.part)];
    if (of_part.contains(use.part)) continue;
    std::vector<Ticks> prices = price_steps(part, on_nodes);
    std::vector<Ticks> waits = waits_of_steps(part, prices, on_nodes);
    of_part[use.part] = {std::move(prices), std::move(waits)};
  }
  std::vector<ProgramStep> without_layers;
  std::span<const ProgramStep> places;
  if (work.program < 0) {
    places = without_layers = steps_of_parts(graph_, work);
  } else {
    places = graph_.programs[static_cast<std::size_t>(work.program)].steps;
  }
  std::vector<LayerStep>& listed = steps_[id.index()];
  for (const ProgramStep& place : places) {
    const auto at = static_cast<std::size_t>(place.step);
    const auto index = static_cast<std::int32_t>(listed.size());
    listed.push_back({.place = place,
                      .step = &graph_.parts[static_cast<std::size_t>(place.part)].steps[at],
                      .index = index,
                      .price = of_part.at(place.part).first[at],
                      .wait = of_part.at(place.part).second[at]});
  }
  if (work.kind == TaskKind::kOptimizer) join_steps(listed);
  if (work.program >= 0)
    list_buffers(graph_.programs[static_cast<std::size_t>(work.program)], listed);
}

namespace {

/// Kernels of one operator and phase.
bool run_together(const LayerStep& one, const LayerStep& other) {
  const auto* a = std::get_if<Kernel>(one.step);
  const auto* b = std::get_if<Kernel>(other.step);
  return a != nullptr && b != nullptr && one.place.op == other.place.op && a->phase == b->phase;
}

}  // namespace

void RunnableGraph::list_buffers(const WorkProgram& program, std::vector<LayerStep>& steps) const {
  const auto events_before = [&](std::size_t step) {
    return std::ranges::lower_bound(program.buffers, static_cast<std::int32_t>(step), {},
                                    &BufferEvent::step);
  };
  std::size_t end = steps.size(), next_end = end;  // of the run, and of the next operator's first
  for (std::size_t i = steps.size(); i-- > 0;) {
    if (i + 1 < steps.size() && !run_together(steps[i], steps[i + 1])) {
      if (steps[i].place.op != steps[i + 1].place.op) next_end = end;
      end = i + 1;
    }
    steps[i].buffers = {events_before(i), events_before(end)};
    steps[i].next_buffers = {events_before(end), events_before(next_end)};
  }
}

/// Receives of one stream keep their order.
void RunnableGraph::order_tasks() {
  using Pending = std::array<std::deque<TaskId>, kStreamCount>;
  std::vector<Pending> pending(graph_.ranks.size());
  for (std::size_t i = 0; i < graph_.tasks.size(); ++i) {
    const Task& task = graph_.tasks[i];
    const std::size_t rank = rank_of(task).index();
    if (task.kind == TaskKind::kReceive) {
      pending[rank][static_cast<std::size_t>(task.stream)].emplace_back(i);
      continue;
    }
    for (const TaskId before : graph_.dependencies_of(TaskId(i))) {
      const Task& needed = graph_.tasks[before.index()];
      if (needed.kind != TaskKind::kReceive) continue;
      std::deque<TaskId>& waiting = pending[rank][static_cast<std::size_t>(needed.stream)];
      while (!waiting.empty() && waiting.front() <= before) {
        tasks_of_[rank].push_back(waiting.front());
        waiting.pop_front();
      }
    }
    tasks_of_[rank].emplace_back(i);
  }
}

bool RunnableGraph::carries_gradient(TaskId id) const {
  const Task& task = graph_.tasks[id.index()];
  const TaskId send = task.kind == TaskKind::kSend ? id : TaskId(task.partner);
  const Task& from = graph_.tasks[send.index()];
  const Task& to = graph_.tasks[static_cast<std::size_t>(receiver_[send.index()])];
  return to.stage < from.stage;
}

}  // namespace meshwright
