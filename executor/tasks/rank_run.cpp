#include "executor/tasks/rank_run.hpp"

#include <algorithm>
#include <array>

namespace meshwright {
namespace {

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

  void run(std::span<const TaskId> tasks, const std::function<void(TaskId)>& before_task) {
    ends_.resize(graph_.tasks.size());
    spans_.reserve(tasks.size());
    for (const TaskId id : tasks) {
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
        const FlagGuard waiting(progress_.is_waiting);
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
    const FlagGuard waiting(progress_.is_waiting);
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
    const FlagGuard waiting(progress_.is_waiting);
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

std::vector<TaskSpan> run_step(const RunnableGraph& runnable, Communicator& communicator,
                               TaskActions& actions, RankClock& clock, RankProgress& progress) {
  std::vector<TaskSpan> spans;
  run_step(runnable, communicator, actions, clock, progress, spans);
  return spans;
}

void run_step(const RunnableGraph& runnable, Communicator& communicator, TaskActions& actions,
              RankClock& clock, RankProgress& progress, std::vector<TaskSpan>& spans,
              const std::function<void(TaskId)>& before_task) {
  StepRun(runnable, communicator, actions, clock, progress, spans)
      .run(runnable.tasks_of(communicator.rank()), before_task);
}

void run_tasks(const RunnableGraph& runnable, std::span<const TaskId> tasks,
               Communicator& communicator, TaskActions& actions, RankClock& clock,
               RankProgress& progress) {
  std::vector<TaskSpan> spans;
  StepRun(runnable, communicator, actions, clock, progress, spans).run(tasks, {});
}

}  // namespace meshwright
