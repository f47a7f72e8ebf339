/// `plan --graph`: the fastest simulated step of a model that is a graph of operators, over
/// micro-batch sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/flags/output_flags.hpp"
#include "cli/partition/model_graph.hpp"

namespace meshwright {

struct GraphPlanRequest {
  std::string file;
  ModelGraphFlags model;
  std::string batch_dimension;  ///< name of the symbolic dimension that is the micro-batch
  std::optional<int> gpus, micro_batch, tensor;
  std::string timeline;  ///< file for the step of the fastest plan; empty: none
  std::int64_t global_batch = 1;
  int top = 10;
};

/// Searches, writes the stages of the fastest plan to the file of -o, and reports. UsageError if
/// the graph has no such dimension.
Outcome plan_graph(const GraphPlanRequest& request, const OutputFlags& output);

}  // namespace meshwright
