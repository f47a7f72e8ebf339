#include "executor/rank_run.hpp"

#include <algorithm>
#include <array>

#include "core/check.hpp"
#include "executor/stage_layers.hpp"

namespace meshwright {
namespace {

bool is_compute(TaskKind kind) {
  return kind != TaskKind::kCollective && kind != TaskKind::kSend && kind != TaskKind::kReceive;
}

Ticks price_of_step(const Step& step, const CostModel& cost_model) {
  return std::visit([&](const auto& what) { return to_ticks(cost_model.time_of(what)); }, step);
}

/// While it lives, the rank waits for another one.
class Waiting {
 public:
  explicit Waiting(RankProgress& progress) : progress_(progress) { progress_.is_waiting = true; }
  ~Waiting() { progress_.is_waiting = false; }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  RankProgress& progress_;
};

/// A rank's place in one training step.
class StepRun {
 public:
  StepRun(const RunnableGraph& runnable, Communicator& communicator, TaskActions& actions,
          RankClock& clock, RankProgress& progress)
      : runnable_(runnable),
        graph_(runnable.graph()),
        communicator_(communicator),
        actions_(actions),
        clock_(clock),
        progress_(progress) {}

  std::vector<TaskSpan> run() {
    const std::vector<TaskId>& mine = runnable_.tasks_of(communicator_.rank());
    ends_.resize(graph_.tasks.size());
    spans_.reserve(mine.size());
    for (const TaskId id : mine) {
      progress_.task.store(id.value, std::memory_order_relaxed);
      run(id);
    }
    return std::move(spans_);
  }

 private:
  void run(TaskId id) {
    const Task& task = graph_.tasks[id.index()];
    actions_.begin_task(task);
    switch (task.kind) {
      case TaskKind::kSend:
        send(id, task);
        break;
      case TaskKind::kReceive:
        receive(id, task);
        break;
      case TaskKind::kCollective:
        collective(id, task);
        break;
      default:
        compute(id, task);
    }
    actions_.end_task(task);
    beat();
  }

  void beat() { progress_.beats.fetch_add(1, std::memory_order_relaxed); }

  /// All dependencies are tasks of this rank.
  Ticks ready(TaskId id, const Task& task) const {
    Ticks at = stream_free_[static_cast<std::size_t>(task.stream)];
    for (const TaskId before : graph_.dependencies_of(id)) at = std::max(at, ends_[before.index()]);
    return at;
  }

  void finish(TaskId id, const Task& task, Ticks stamp_at_start) {
    ends_[id.index()] = clock_.time();
    stream_free_[static_cast<std::size_t>(task.stream)] = clock_.time();
    spans_.push_back({id, std::min(stamp_at_start, clock_.stamp()), clock_.stamp()});
  }

  void compute(TaskId id, const Task& task) {
    clock_.start_task(ready(id, task), /*occupies_thread=*/true);
    const Ticks stamp = clock_.stamp();
    for (const LayerStep& step : runnable_.steps_of(task)) {
      if (const auto* kernel = std::get_if<Kernel>(step.step)) {
        clock_.start_kernel();
        actions_.compute(task, step, *kernel);
        clock_.end_kernel(step.price);
      } else {
        const Waiting waiting(progress_);
        const Ticks latest =
            actions_.communicate(task, step, std::get<Collective>(*step.step), clock_.time());
        clock_.end_communication(latest, step.price);
      }
      beat();
    }
    finish(id, task, stamp);
  }

  /// The message is under way while it is sent, later by the latency.
  void send(TaskId id, const Task& task) {
    clock_.start_task(ready(id, task), false);
    const Ticks start = clock_.time(), stamp = clock_.stamp();
    const WorkPrice& price = runnable_.price_of(task);
    const RankId to = graph_.ranks[static_cast<std::size_t>(runnable_.receiver_of(id))].rank;
    communicator_.send(to, {Channel::kPipeline, id.value}, actions_.outgoing(task),
                       {start + price.latency, start + price.duration + price.latency});
    clock_.end_communication(start, price.duration);
    finish(id, task, stamp);
  }

  void receive(TaskId id, const Task& task) {
    const Task& sent = graph_.tasks[static_cast<std::size_t>(task.partner)];
    const RankId from = graph_.ranks[static_cast<std::size_t>(sent.rank)].rank;
    const Waiting waiting(progress_);
    const MessageTimes times =
        communicator_.receive(from, {Channel::kPipeline, task.partner}, actions_.incoming(task));
    clock_.start_task(std::max(times.start, ready(id, task)), false);
    const Ticks start = clock_.time(), stamp = clock_.stamp();
    clock_.end_communication(std::max(start, times.end), Ticks());
    finish(id, task, stamp);
  }

  /// A span holds the common transfer only: it starts when the last member is there.
  void collective(TaskId id, const Task& task) {
    clock_.start_task(ready(id, task), false);
    const Ticks arrived = clock_.stamp();
    const Waiting waiting(progress_);
    const Ticks latest = actions_.communicate(task, graph_.works[task.work.index()].collective,
                                              runnable_.members_of(task), clock_.time());
    const Ticks start = std::max(clock_.time(), latest);
    clock_.end_communication(latest, runnable_.price_of(task).duration);
    finish(id, task, std::max(arrived, start));
  }

  const RunnableGraph& runnable_;
  const TaskGraph& graph_;
  Communicator& communicator_;
  TaskActions& actions_;
  RankClock& clock_;
  RankProgress& progress_;
  std::array<Ticks, kStreamCount> stream_free_{};
  std::vector<Ticks> ends_;  ///< by task, of this rank's
  std::vector<TaskSpan> spans_;
};

}  // namespace

RunnableGraph::RunnableGraph(const TaskGraph& graph, const Plan& plan, const ModelGraph& model,
                             const CostModel& cost_model)
    : graph_(graph),
      prices_(price_works(graph.parts, graph.works, cost_model)),
      tasks_of_(graph.ranks.size()),
      members_(graph.collectives.size()),
      receiver_(graph.tasks.size(), -1),
      programs_(graph.works.size()) {
  const std::vector<std::vector<LayerId>> layers = layers_of_stages(plan, model);
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task& task = graph.tasks[i];
    MW_CHECK(graph.ranks[static_cast<std::size_t>(task.rank)].rank.value == task.rank);
    tasks_of_[static_cast<std::size_t>(task.rank)].push_back(TaskId(i));
    if (task.kind == TaskKind::kReceive)
      receiver_[static_cast<std::size_t>(task.partner)] = task.rank;
    if (task.kind == TaskKind::kCollective)
      members_[static_cast<std::size_t>(task.partner)].push_back(RankId(task.rank));
    if (is_compute(task.kind) && programs_[task.work.index()].empty())
      expand(graph.works[task.work.index()],
             task.stage < 0 ? std::vector<LayerId>() : layers[static_cast<std::size_t>(task.stage)],
             cost_model, programs_[task.work.index()]);
  }
}

/// Parts stand in the order of the pass: forward down the layers, backward up. A layer that is
/// recomputed has two parts in a row, and moves on with the second.
void RunnableGraph::expand(const Work& work, const std::vector<LayerId>& layers,
                           const CostModel& cost_model, std::vector<LayerStep>& program) const {
  std::size_t passed = 0;
  const auto layer = [&] {
    if (layers.empty()) return LayerId(-1);
    MW_CHECK(passed < layers.size());
    return work.kind == TaskKind::kForward ? layers[passed] : layers[layers.size() - 1 - passed];
  };
  for (const WorkPartUse& use : work.parts)
    for (int repeat = 0; repeat < use.count; ++repeat) {
      const WorkPart& part = graph_.parts[static_cast<std::size_t>(use.part)];
      for (const Step& step : part.steps)
        program.push_back({layer(), use.part, &step, price_of_step(step, cost_model)});
      passed += part.recompute ? 0 : 1;
    }
}

std::vector<TaskSpan> run_step(const RunnableGraph& runnable, Communicator& communicator,
                               TaskActions& actions, RankClock& clock, RankProgress& progress) {
  return StepRun(runnable, communicator, actions, clock, progress).run();
}

}  // namespace meshwright
