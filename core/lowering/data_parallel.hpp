/// Passes that are split into units, with their gathers and reductions.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/graph/task_graph.hpp"
#include "core/schedule/schedule.hpp"

namespace meshwright {

struct LoweringContext;

/// Appends the unit tasks of split passes, with the gathers and reductions that overlap them. The
/// actions of a device must be passed in its order.
class UnitTasks {
 public:
  explicit UnitTasks(LoweringContext& context);
  ~UnitTasks();
  bool splits(const Action& action, int device) const;
  /// `prototype` has everything but the work; the first task depends on `inputs`. Returns the last
  /// task. In the stage's last backward pass, stores in `completes_unit` the task that completes
  /// each unit's gradients.
  TaskId append(const Action& action, const Task& prototype, std::span<const TaskId> inputs,
                std::vector<std::int32_t>& completes_unit);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace meshwright
