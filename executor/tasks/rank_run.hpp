/// Runs one rank's tasks in order, with the same rules for task start and end as the simulator's
/// linear pass.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "executor/launch/rank_progress.hpp"
#include "executor/tasks/rank_clock.hpp"
#include "executor/tasks/runnable_graph.hpp"
#include "executor/tasks/task_actions.hpp"
#include "executor/transport/communicator.hpp"

namespace meshwright {

struct TaskSpan {
  TaskId task;
  Ticks start, end;
  friend bool operator==(const TaskSpan&, const TaskSpan&) = default;
};

/// Runs one training step of one rank; returns the spans in task order. Throws what actions and
/// communicator throw, and PeerFailure if the launcher stops the rank.
std::vector<TaskSpan> run_step(const RunnableGraph& runnable, Communicator& communicator,
                               TaskActions& actions, RankClock& clock, RankProgress& progress);

/// The same. If it throws, `spans` holds the tasks completed so far; `before_task`, if given, is
/// called before each task.
void run_step(const RunnableGraph& runnable, Communicator& communicator, TaskActions& actions,
              RankClock& clock, RankProgress& progress, std::vector<TaskSpan>& spans,
              const std::function<void(TaskId)>& before_task = {});

/// The same, of some of the rank's tasks, in this order; the others count as done.
void run_tasks(const RunnableGraph& runnable, std::span<const TaskId> tasks,
               Communicator& communicator, TaskActions& actions, RankClock& clock,
               RankProgress& progress);

}  // namespace meshwright
