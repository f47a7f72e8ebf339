/// The end of a step: gradients are reduced over the ranks that hold the same parameters, the
/// gradient norm is a barrier for all ranks, every rank updates its parameters, and under ZeRO 1
/// and 2 (Rajbhandari et al., arXiv 1910.02054) the updated parameters are gathered, unless the
/// next step does so. Flushless schedules update between passes instead.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/ids.hpp"
#include "core/base/kernel.hpp"
#include "core/graph/task_graph.hpp"
#include "core/lowering/data_groups.hpp"

namespace meshwright {

struct LoweringContext;

/// Gradients that are reduced together, and the stages that hold them.
struct GradientReduction {
  ParameterRange range;
  std::vector<StageId> stages;      ///< one, or two in bidirectional schedules
  std::vector<std::int32_t> after;  ///< by stage: the task that completes its gradients, later
                                    ///< those that reduce them and copy them to the host
  std::int32_t last() const { return *std::max_element(after.begin(), after.end()); }
};

/// Vectors by pipeline rank.
struct StepEnd {
  std::vector<GradientReduction> reductions;  ///< in the order in which gradients become complete
  std::vector<TaskId> ready;                  ///< the rank's last collective so far, or -1
  std::vector<TaskId> copied;  ///< its last copy of gradients to the host; empty: none
  std::vector<TaskId>
      updated;  ///< its optimizer task, or the copy of its parameters back from the host
};

/// False if replicas do not reduce gradients among each other, and for flushless schedules.
bool has_step_end(const LoweringContext& context);
PipelineRankId device_of(const LoweringContext& context, StageId stage);
/// Without buckets nothing overlaps: a rank communicates the gradients of all its chunks after its
/// last backward pass (Megatron-LM without --overlap-grad-reduce: finalize_model_grads).
TaskId last_backward_of(const LoweringContext& context, StageId stage);
WorkId append_collective_work(TaskGraph& graph, const Collective& collective);
/// Appends a member of the open collective, on the data stream.
void append_to_step_end(LoweringContext& context, WorkId work, StageId stage, TaskId after);
/// Appends the exchanges in sequence; the members of stage i of the reduction wait for after[i].
void append_exchanges(LoweringContext& context, const GradientReduction& reduction,
                      const std::vector<DataExchange>& exchanges, const std::vector<TaskId>& after);

}  // namespace meshwright
