#include "executor/tasks/rank_run.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <utility>

#include "core/base/check.hpp"
#include "core/plan/placement.hpp"
#include "executor/tasks/sharded_lifetimes.hpp"

namespace meshwright {
namespace {

/// Marks the rank as waiting for another one during its lifetime.
class Waiting {
 public:
  explicit Waiting(RankProgress& progress) : progress_(progress) { progress_.is_waiting = true; }
  ~Waiting() { progress_.is_waiting = false; }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  RankProgress& progress_;
};

/// One training step of a rank.
class StepRun {
 public:
  StepRun(const RunnableGraph& runnable, Communicator& communicator, TaskActions& actions,
          RankClock& clock, RankProgress& progress, std::vector<TaskSpan>& spans)
      : runnable_(runnable),
        graph_(runnable.graph()),
        communicator_(communicator),
        actions_(actions),
        clock_(clock),
        progress_(progress),
        spans_(spans) {
    actions_.set_wait_callback(
        [this](bool begins) { begins ? clock_.pause_kernel() : clock_.resume_kernel(); });
  }
  ~StepRun() { actions_.set_wait_callback({}); }
  StepRun(const StepRun&) = delete;
  StepRun& operator=(const StepRun&) = delete;

  void run(const std::function<void(TaskId)>& before_task) {
    const std::vector<TaskId>& mine = runnable_.tasks_of(communicator_.rank());
    ends_.resize(graph_.tasks.size());
    spans_.reserve(mine.size());
    for (const TaskId id : mine) {
      progress_.task.store(id.value, std::memory_order_relaxed);
      stop_if_asked();
      if (before_task) before_task(id);
      run(id);
    }
    progress_.task.store(-1, std::memory_order_relaxed);
  }

 private:
  void run(TaskId id) {
    const RunTask task{graph_.tasks[id.index()], id};
    actions_.begin_task(task);
    switch (task.kind) {
      case TaskKind::kSend:
        send(task);
        break;
      case TaskKind::kReceive:
        receive(task);
        break;
      case TaskKind::kCollective:
        collective(task);
        break;
      default:
        compute(task);
    }
    actions_.end_task(task);
    beat();
  }

  /// Also discards times of aborted sleeps, which would be wrong.
  void stop_if_asked() const {
    if (progress_.must_stop) throw PeerFailure("another rank failed");
  }

  void beat() { progress_.beats.fetch_add(1, std::memory_order_relaxed); }

  /// All dependencies are tasks of this rank.
  Ticks ready(const RunTask& task) const {
    Ticks at = stream_free_[static_cast<std::size_t>(task.stream)];
    for (const TaskId before : graph_.dependencies_of(task.id))
      at = std::max(at, ends_[before.index()]);
    return at;
  }

  void finish(const RunTask& task, Ticks stamp_at_start) {
    stop_if_asked();
    ends_[task.id.index()] = clock_.time();
    stream_free_[static_cast<std::size_t>(task.stream)] = clock_.time();
    spans_.push_back({task.id, std::min(stamp_at_start, clock_.stamp()), clock_.stamp()});
  }

  void compute(const RunTask& task) {
    clock_.start_task(ready(task), /*occupies_thread=*/true);
    const Ticks stamp = clock_.stamp();
    for (const LayerStep& step : runnable_.steps_of(task)) {
      if (const auto* kernel = std::get_if<Kernel>(step.step)) {
        actions_.wait_for_compute_slot();
        clock_.start_kernel();
        actions_.compute(task, step, *kernel);
        clock_.end_kernel(step.price);
      } else {
        const Waiting waiting(progress_);
        const Ticks latest =
            actions_.communicate(task, step, std::get<Collective>(*step.step), clock_.time());
        // Sleeping ranks do not wait for stragglers as computing ranks do: add the predicted wait.
        const Ticks wait = clock_.kind() == TimelineClock::kReplay ? step.wait : Ticks();
        clock_.end_communication(latest, wait + step.price);
      }
      beat();
    }
    if (task.kind == TaskKind::kOptimizer) clock_.add_deferred();
    finish(task, stamp);
  }

  /// The receiver sees the transfer delayed by the latency.
  void send(const RunTask& task) {
    clock_.start_task(ready(task), false);
    const Ticks start = clock_.time(), stamp = clock_.stamp();
    const WorkPrice& price = runnable_.price_of(task);
    const RankId to = runnable_.rank_of(graph_.tasks[runnable_.receive_of(task.id).index()]);
    communicator_.send(to, {Channel::kPipeline, task.id.value}, actions_.outgoing(task),
                       {start + price.latency, start + price.duration + price.latency});
    clock_.end_communication(start, price.duration);
    finish(task, stamp);
  }

  void receive(const RunTask& task) {
    const Task& sent = graph_.tasks[static_cast<std::size_t>(task.partner)];
    const RankId from = runnable_.rank_of(sent);
    const Waiting waiting(progress_);
    const MessageTimes times =
        communicator_.receive(from, {Channel::kPipeline, task.partner}, actions_.incoming(task));
    clock_.start_task(std::max(times.start, ready(task)), false);
    const Ticks start = clock_.time(), stamp = clock_.stamp();
    clock_.end_communication(std::max(start, times.end), Ticks());
    finish(task, stamp);
  }

  /// The span covers the transfer only: it starts when the last member is ready.
  void collective(const RunTask& task) {
    clock_.start_task(ready(task), false);
    const Ticks arrived = clock_.stamp();
    const Collective& what = graph_.works[task.work.index()].collective;
    actions_.wait_for_compute_slot();
    clock_.start_kernel();
    actions_.prepare(task, what);
    clock_.defer_kernel();
    const Waiting waiting(progress_);
    const Ticks latest =
        actions_.communicate(task, what, runnable_.members_of(task), clock_.time());
    const Ticks start = std::max(clock_.time(), latest);
    clock_.end_communication(latest, runnable_.price_of(task).duration);
    finish(task, std::max(arrived, start));
  }

  const RunnableGraph& runnable_;
  const TaskGraph& graph_;
  Communicator& communicator_;
  TaskActions& actions_;
  RankClock& clock_;
  RankProgress& progress_;
  std::array<Ticks, kStreamCount> stream_free_{};
  std::vector<Ticks> ends_;  ///< by task, for this rank's tasks
  std::vector<TaskSpan>& spans_;
};

}  // namespace

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
  std::span<const BufferEvent> buffers;
  if (work.program < 0) {
    places = without_layers = steps_of_parts(graph_, work);
  } else {
    const WorkProgram& program = graph_.programs[static_cast<std::size_t>(work.program)];
    places = program.steps;
    buffers = program.buffers;
  }
  std::vector<LayerStep>& listed = steps_[id.index()];
  for (const ProgramStep& place : places) {
    const auto at = static_cast<std::size_t>(place.step);
    const auto index = static_cast<std::int32_t>(listed.size());
    while (!buffers.empty() && buffers.front().step < index) buffers = buffers.subspan(1);
    listed.push_back({.place = place,
                      .step = &graph_.parts[static_cast<std::size_t>(place.part)].steps[at],
                      .index = index,
                      .buffers = buffers,
                      .price = of_part.at(place.part).first[at],
                      .wait = of_part.at(place.part).second[at]});
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
  for (std::vector<TaskId>& tasks : tasks_of_) tasks = with_prefetched_gathers(graph_, tasks);
}

bool RunnableGraph::carries_gradient(TaskId id) const {
  const Task& task = graph_.tasks[id.index()];
  const TaskId send = task.kind == TaskKind::kSend ? id : TaskId(task.partner);
  const Task& from = graph_.tasks[send.index()];
  const Task& to = graph_.tasks[static_cast<std::size_t>(receiver_[send.index()])];
  return to.stage < from.stage;
}

std::vector<TaskSpan> run_step(const RunnableGraph& runnable, Communicator& communicator,
                               TaskActions& actions, RankClock& clock, RankProgress& progress) {
  std::vector<TaskSpan> spans;
  run_step(runnable, communicator, actions, clock, progress, spans);
  return spans;
}

void run_step(const RunnableGraph& runnable, Communicator& communicator, TaskActions& actions,
              RankClock& clock, RankProgress& progress, std::vector<TaskSpan>& spans,
              const std::function<void(TaskId)>& before_task) {
  StepRun(runnable, communicator, actions, clock, progress, spans).run(before_task);
}

}  // namespace meshwright
