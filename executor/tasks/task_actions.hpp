/// What the tasks of one rank compute and send: real training, or nothing at all under the replay
/// clock.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "core/base/ids.hpp"
#include "core/graph/task_graph.hpp"

namespace meshwright {

/// One kernel or collective of a compute task.
struct LayerStep {
  ProgramStep place;  ///< its layer, operator and tensor; -1: the whole rank (optimizer)
  const Step* step = nullptr;
  std::int32_t index = 0;  ///< in its task
  /// The events of buffers from this step to the end of the run of kernels that it belongs to:
  /// those of one operator and phase without a collective in between, which actions compute at
  /// once. Then those of the rest of the operator and of the next operator's first run.
  std::span<const BufferEvent> buffers = {}, next_buffers = {};
  Ticks price;
  Ticks wait;  ///< predicted wait for the slowest member before a collective
};

/// A task of the graph with its ID.
struct RunTask : Task {
  TaskId id;
};

class TaskActions {
 public:
  virtual ~TaskActions() = default;
  /// Sets a callback to be called with true before and false after every wait for another rank
  /// inside a computation: the key-value exchange of ring attention. Default: there are no such
  /// waits.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): overriding functions keep it
  virtual void set_wait_callback(std::function<void(bool begins)> /*callback*/) {}
  /// Blocks until this rank may compute. Called before compute() and prepare(), which are timed;
  /// this wait is not.
  virtual void wait_for_compute_slot() {}
  /// Called before the first task of training step `step`.
  virtual void begin_step(int step) = 0;
  virtual void begin_task(const RunTask& task) = 0;
  virtual void end_task(const RunTask& task) = 0;
  virtual void compute(const RunTask& task, const LayerStep& step, const Kernel& kernel) = 0;
  /// Runs a collective inside a compute task; this rank is ready at `ready`. Returns when the last
  /// member was.
  virtual Ticks communicate(const RunTask& task, const LayerStep& step,
                            const Collective& collective, Ticks ready) = 0;
  /// Local work before a collective task that the cost model attributes to the optimizer step: the
  /// norm of this rank's gradients. Otherwise nothing.
  virtual void prepare([[maybe_unused]] const RunTask& task,
                       [[maybe_unused]] const Collective& collective) {}
  /// Runs a collective task; `members` are its ranks in order.
  virtual Ticks communicate(const RunTask& task, const Collective& collective,
                            std::span<const RankId> members, Ticks ready) = 0;
  /// The buffers of a send and of a receive.
  virtual std::span<const std::byte> outgoing(const RunTask& send) = 0;
  virtual std::span<std::byte> incoming(const RunTask& receive) = 0;
};

}  // namespace meshwright
