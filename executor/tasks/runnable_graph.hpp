/// A task graph of all ranks as lists of what each rank runs: its tasks, their steps and prices.
#pragma once

#include <span>
#include <vector>

#include "core/cost/cost_model.hpp"
#include "core/graph/task_graph.hpp"
#include "core/plan/plan.hpp"
#include "executor/tasks/task_actions.hpp"

namespace meshwright {

/// Shared by the ranks; must outlive their runs.
class RunnableGraph {
 public:
  /// To train, the graph must have been lowered with LoweringOptions::programs. The cost model may
  /// return zero times if the clock does not use them.
  RunnableGraph(const TaskGraph& graph, const Plan& plan, const CostModel& cost_model);

  const TaskGraph& graph() const { return graph_; }
  const WorkPrice& price_of(const Task& task) const { return prices_[task.work.index()]; }
  RankId rank_of(const Task& task) const {
    return graph_.ranks[static_cast<std::size_t>(task.rank)].rank;
  }
  /// Execution order of a rank: the order of the graph, except that each receive is moved to its
  /// first use, so that a rank never waits for data it does not need yet.
  const std::vector<TaskId>& tasks_of(RankId rank) const { return tasks_of_[rank.index()]; }
  /// Whether this send or receive transfers a gradient.
  bool carries_gradient(TaskId send_or_receive) const;
  int part_of_stage(std::size_t stage) const { return part_of_stage_[stage]; }
  /// Kernels and collectives of a compute task, in order.
  const std::vector<LayerStep>& steps_of(const Task& task) const {
    return steps_[task.work.index()];
  }
  /// Events of the buffers of a pass after its last step.
  std::span<const BufferEvent> last_buffers_of(const Task& pass) const;
  TaskId receive_of(TaskId send) const { return TaskId(receiver_[send.index()]); }
  /// A pass of a stage may be split into several tasks: whether this one is the first, or the last.
  bool begins_pass(const Task& task) const { return program_of(task).begins_pass; }
  bool ends_pass(const Task& task) const { return program_of(task).ends_pass; }
  /// Forward work on the outputs of a finished pass: the loss of all devices' outputs.
  bool follows_pass(const Task& task) const { return program_of(task).of_gathered_outputs; }
  LayerId lowest_layer(const Task& task) const { return program_of(task).lowest_layer; }
  /// Members of a collective, in the order of their tasks.
  const std::vector<RankId>& members_of(const Task& task) const {
    return members_[static_cast<std::size_t>(task.partner)];
  }

 private:
  const WorkProgram& program_of(const Task& task) const;
  void list_steps(WorkId work, const CostModel& cost_model);
  void list_buffers(const WorkProgram& program, std::vector<LayerStep>& steps) const;
  void order_tasks();

  const TaskGraph& graph_;
  std::vector<WorkPrice> prices_;
  std::vector<std::vector<TaskId>> tasks_of_;
  std::vector<std::vector<RankId>> members_;
  std::vector<int> part_of_stage_;
  std::vector<std::int32_t> receiver_;         ///< by task: the receive of a send
  std::vector<std::vector<LayerStep>> steps_;  ///< by work
};

}  // namespace meshwright
