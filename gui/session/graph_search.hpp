/// Plans of a graph of operators, as `meshwright plan --graph` finds them.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/cluster/cluster.hpp"
#include "models/text/named_text.hpp"
#include "planner/partition/graph_plan.hpp"

namespace meshwright::gui {

struct GraphQuestion {
  NamedText graph, cluster;
  int gpus = 8;
  std::int64_t global_batch = 256;
  std::int64_t micro_batch = 0;  ///< 0: all, if the graph has a dimension "batch"
  int tensor = 0;                ///< tensor-parallel degree; 0: all
};

struct GraphAnswer {
  GraphQuestion question;
  SizedGraphPlans found;
  std::string cost_model;
};

/// Runs in a job. Throws InputError.
std::shared_ptr<const GraphAnswer> search_graph(const GraphQuestion& question,
                                                const std::function<bool()>& stop);

}  // namespace meshwright::gui
