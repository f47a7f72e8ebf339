/// Carries out one rank's tasks in their order: the executor's counterpart of the simulator's
/// linear pass, with the same rules for when a task starts and ends.
#pragma once

#include <functional>
#include <vector>

#include "core/cost_model.hpp"
#include "core/plan.hpp"
#include "core/task_graph.hpp"
#include "executor/communicator.hpp"
#include "executor/launch.hpp"
#include "executor/rank_clock.hpp"
#include "executor/task_actions.hpp"

namespace meshwright {

/// A graph of all ranks, in any order, ready to be carried out. Shared by the ranks; outlives their
/// runs.
class RunnableGraph {
 public:
  /// Prices may be all zero where the clock does not ask for them.
  RunnableGraph(const TaskGraph& graph, const Plan& plan, const ModelGraph& model,
                const CostModel& cost_model);

  const TaskGraph& graph() const { return graph_; }
  const WorkPrice& price_of(const Task& task) const { return prices_[task.work.index()]; }
  RankId rank_of(const Task& task) const {
    return graph_.ranks[static_cast<std::size_t>(task.rank)].rank;
  }
  /// In the order in which one thread carries them out: that of the graph, but receives stand where
  /// they are needed first, so that a rank never waits for what it does not need yet.
  const std::vector<TaskId>& tasks_of(RankId rank) const { return tasks_of_[rank.index()]; }
  /// A send, or a receive: whether a gradient travels.
  bool carries_gradient(const Task& task) const;
  int part_of_stage(std::size_t stage) const { return part_of_stage_[stage]; }
  /// Kernels and collectives of a compute task, in order.
  const std::vector<LayerStep>& steps_of(const Task& task) const {
    return programs_[task.work.index()];
  }
  TaskId receive_of(TaskId send) const { return TaskId(receiver_[send.index()]); }
  /// A pass of a stage may be cut into several tasks: whether this one begins it, and ends it.
  bool begins_pass(const Task& task) const { return spans_[task.work.index()].begins; }
  bool ends_pass(const Task& task) const { return spans_[task.work.index()].ends; }
  /// Forward work on what the pass has made already: the loss of all devices' outputs.
  bool is_behind_pass(const Task& task) const { return spans_[task.work.index()].is_behind; }
  /// Of the layers that a pass is about: the lowest one's place in its stage.
  std::size_t lowest_layer(const Task& task) const { return spans_[task.work.index()].lowest; }
  /// Members of a collective, in the order of their tasks.
  const std::vector<RankId>& members_of(const Task& task) const {
    return members_[static_cast<std::size_t>(task.partner)];
  }

 private:
  /// Layers of its stage that a work is about, counted in the order of the pass.
  struct LayerSpan {
    bool is_known = false, begins = true, ends = true, is_behind = false;
    std::size_t first = 0, count = 0;
    std::size_t lowest = 0;  ///< in the stage
  };
  void find_spans(const std::vector<std::vector<LayerId>>& layers);
  void expand(WorkId work, const std::vector<LayerId>& layers, const CostModel& cost_model);
  const TaskGraph& graph_;
  std::vector<WorkPrice> prices_;
  std::vector<std::vector<TaskId>> tasks_of_;
  std::vector<std::vector<RankId>> members_;
  void order_tasks();
  std::vector<int> part_of_stage_;
  std::vector<std::int32_t> receiver_;            ///< by task: the receive of a send
  std::vector<LayerSpan> spans_;                  ///< by work
  std::vector<std::vector<LayerStep>> programs_;  ///< by work
};

struct TaskSpan {
  TaskId task;
  Ticks start, end;
  friend bool operator==(const TaskSpan&, const TaskSpan&) = default;
};

/// One training step of one rank; spans in the order of its tasks. Throws what actions and
/// communicator throw, and PeerFailure when the launcher asks the rank to stop.
std::vector<TaskSpan> run_step(const RunnableGraph& runnable, Communicator& communicator,
                               TaskActions& actions, RankClock& clock, RankProgress& progress);

/// The same. What it throws leaves the spans of tasks that had ended in `spans`; `before_task`, if
/// any, is called before each.
void run_step(const RunnableGraph& runnable, Communicator& communicator, TaskActions& actions,
              RankClock& clock, RankProgress& progress, std::vector<TaskSpan>& spans,
              const std::function<void(TaskId)>& before_task = {});

}  // namespace meshwright
