/// Actions with a stop watch beside them: how long every kernel of a run took, as CPU time of the
/// thread that carried it out. What one call for an operator takes, with all that the executor does
/// around its kernels (memory, copies, what it computes again), is the kernel's time.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "core/calibration.hpp"
#include "executor/forwarded_actions.hpp"
#include "executor/rank_clock.hpp"

namespace meshwright {

/// Kernels of one operator in one phase are carried out together; times are of all of them.
struct TimedKernels {
  std::vector<Kernel> kernels;
  std::vector<Ticks> times;  ///< a call each
};

/// Actions belong to others and outlive this.
class TimedActions final : public ForwardedActions {
 public:
  explicit TimedActions(TaskActions& actions, WorkTime work_time = thread_cpu_time)
      : ForwardedActions(actions), work_time_(work_time) {}

  void end_task(const Task& task) override;
  void compute(const Task& task, const LayerStep& step, const Kernel& kernel) override;
  /// The norm of the own gradients, say, is part of the update to come, as it is where a job of one
  /// rank updates, and in the clock's books.
  void prepare(const Task& task, const Collective& collective) override;
  Ticks communicate(const Task& task, const LayerStep& step, const Collective& collective,
                    Ticks ready) override;
  using ForwardedActions::communicate;

  /// In no order that means anything, but always the same one.
  std::vector<TimedKernels> take();
  /// Of what was timed so far: the caches and the memory of a first step are not those of others.
  void forget() { timed_.clear(); }

 private:
  void close_group();
  WorkTime work_time_;
  std::vector<Kernel> group_;  ///< under way
  LayerId layer_{-1};
  Ticks time_;      ///< of the group
  Ticks prepared_;  ///< for the next update
  /// By the step of the graph's part that begins the group, and its length: two parts may share it.
  std::map<std::pair<const Kernel*, std::size_t>, TimedKernels> timed_;
  const Kernel* first_ = nullptr;
};

/// Mean times of kernels, filed by family and shape; a call that took more than three times the
/// median counts as that much. Kernels that were only timed together share
/// their time as a rough formula (flop at 20 GFLOP/s, bytes at 5 GB/s) says. Points of equal shape
/// are pooled. Sorted by family, then by shape.
std::vector<KernelCurve> kernel_curves(const std::vector<TimedKernels>& timed);

}  // namespace meshwright
