/// What the tasks of one rank do with numbers, beside taking time: real training, or nothing at all
/// where only the order is tried.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "core/ids.hpp"
#include "core/task_graph.hpp"

namespace meshwright {

/// One kernel or collective of a compute task, with the layer it belongs to.
struct LayerStep {
  LayerId layer;          ///< -1: of the whole rank (optimizer)
  std::int32_t part = 0;  ///< in TaskGraph::parts
  const Step* step = nullptr;
  Ticks price;
  Ticks wait;  ///< before a collective, for the slowest of its group, as it is predicted
};

class TaskActions {
 public:
  virtual ~TaskActions() = default;
  /// To be called with true before, and with false behind every wait for another rank that is part
  /// of a computation: keys and values round a ring. Says nothing where there is none.
  virtual void tell_of_waits([[maybe_unused]] std::function<void(bool begins)> tell) {}
  /// Returns when this rank may compute. Called in front of compute() and prepare(), whose time
  /// counts; that of waiting does not.
  virtual void wait_for_turn() {}
  /// Before the first task of training step `step`.
  virtual void begin_step(int step) = 0;
  virtual void begin_task(const Task& task) = 0;
  virtual void end_task(const Task& task) = 0;
  virtual void compute(const Task& task, const LayerStep& step, const Kernel& kernel) = 0;
  /// A collective inside a compute task; this rank is ready at `ready`. Returns when the last
  /// member was.
  virtual Ticks communicate(const Task& task, const LayerStep& step, const Collective& collective,
                            Ticks ready) = 0;
  /// What this rank does alone in front of a collective that is a task of its own, and what is
  /// priced with its update of parameters: the norm of its gradients. Else nothing.
  virtual void prepare([[maybe_unused]] const Task& task,
                       [[maybe_unused]] const Collective& collective) {}
  /// A collective that is a task of its own; `members` are its ranks in order.
  virtual Ticks communicate(const Task& task, const Collective& collective,
                            std::span<const RankId> members, Ticks ready) = 0;
  /// The bytes that the send hands out, and those that the receive takes in.
  virtual std::span<const std::byte> outgoing(const Task& send) = 0;
  virtual std::span<std::byte> incoming(const Task& receive) = 0;
};

}  // namespace meshwright
