/// The training step of a partitioned model: what `partition` reports about it.
#pragma once

#include <optional>
#include <string>

#include "cli/partition/model_graph.hpp"
#include "cli/terminal/document.hpp"
#include "core/timeline/timeline.hpp"
#include "planner/partition/lower_partition.hpp"

namespace meshwright {

/// Empty if the batch has too many micro-batches to simulate each.
std::optional<Prediction> partition_step(const PricedModel& model,
                                         const PricedKernelGraph<ReplicationProblem>& priced,
                                         const TrainingPartition& partition);

/// Step time, utilization, bubble and memory, and the parts of the step of every stage.
Document step_text(const Prediction& step, int microbatches);
/// The JSON object with a member "step"; null without one.
std::string with_step(const std::string& json, const std::optional<Prediction>& step);
Timeline timeline_of(const Prediction& step, const PricedModel& model, const std::string& name);

}  // namespace meshwright
