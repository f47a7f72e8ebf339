/// Decorator that measures the CPU time of every kernel of a run on the thread that runs it. The
/// time of a kernel includes everything the executor does around it for the operator: memory
/// management, copies, recomputed values.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "executor/tasks/forwarding_actions.hpp"
#include "executor/tasks/rank_clock.hpp"

namespace meshwright {

/// The kernels of one operator and phase run together; each time covers all of them.
struct TimedKernels {
  std::vector<Kernel> kernels;
  std::vector<Ticks> times;  ///< one per call
};

/// Does not own the actions, which must outlive it.
class TimedActions final : public ForwardingActions {
 public:
  explicit TimedActions(TaskActions& actions, WorkTime work_time = thread_cpu_time)
      : ForwardingActions(actions), work_time_(work_time) {}

  void end_task(const RunTask& task) override;
  void compute(const RunTask& task, const LayerStep& step, const Kernel& kernel) override;
  /// Adds the time of local work, such as the gradient norm, to the optimizer step that follows, as
  /// on a single rank and by the rank's clock.
  void prepare(const RunTask& task, const Collective& collective) override;
  Ticks communicate(const RunTask& task, const LayerStep& step, const Collective& collective,
                    Ticks ready) override;
  using ForwardingActions::communicate;

  /// In an unspecified but deterministic order.
  std::vector<TimedKernels> take();
  /// Discards all times so far: a first step has cold caches and fresh memory.
  void forget() { timed_.clear(); }

 private:
  void close_group();
  WorkTime work_time_;
  std::vector<Kernel> group_;  ///< kernels of the running operator
  LayerId layer_{-1};
  Ticks time_;      ///< of group_
  Ticks prepared_;  ///< added to the next optimizer step
  /// By first kernel of the group in the graph and group length: two groups may share the first.
  std::map<std::pair<const Kernel*, std::size_t>, TimedKernels> timed_;
  const Kernel* first_ = nullptr;
};

}  // namespace meshwright
