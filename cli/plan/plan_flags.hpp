/// The options of `plan`, and what they ask for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/flags/output_flags.hpp"
#include "cli/flags/strategy_flags.hpp"
#include "cli/flags/variation_flags.hpp"
#include "cli/job/job.hpp"
#include "cli/partition/graph_plan_report.hpp"
#include "planner/sizing/cluster_sizes.hpp"
#include "planner/sizing/run_cost.hpp"

namespace meshwright {

/// Of plans of a graph of operators.
struct GraphPlanFlags {
  std::string file, batch_dimension = "batch", timeline;
  std::vector<std::string> dimensions;
  const CLI::App* command = nullptr;  ///< knows which options were given
};

/// Unparsed where a word or a list is allowed; empty: not given.
struct PlanFlags {
  SourceFlags sources;  ///< --model and --cluster: names separated by commas
  std::string gpus, global_batch, sequence_length;
  std::string tokens, deadline, price, margin;
  FailureFlags failures;
  std::optional<int> top, threads, time_limit;
  bool fix = false, why = false, sensitivity = false, per_layer = false;
  FixedChoices choices;
  GraphPlanFlags graph;
  OutputFlags output;
};

CLI::App* add_plan_command(CLI::App& app, PlanFlags& flags);

struct PlanRequest {
  std::vector<std::string> models, clusters;
  /// Single numbers and ranges; empty: the fewest that fit.
  std::vector<SizeRange> gpus;
  std::int64_t global_batch = 1;
  std::optional<std::int64_t> sequence_length;  ///< absent: the longest that fits
  std::optional<PlannedRun> run;
  std::optional<Seconds> deadline;
  Bytes memory_margin;  ///< to leave free on every device
};

/// UsageError for values that cannot be parsed, and options that are missing or conflict.
PlanRequest plan_request(const PlanFlags& flags);

/// The graph of --graph. UsageError for options that are missing, or have no meaning for a graph.
GraphPlanRequest graph_plan_request(const PlanFlags& flags);

/// True if the answer is one search: one model on one cluster, at one size, without a deadline.
bool is_single_search(const PlanRequest& request);

}  // namespace meshwright
