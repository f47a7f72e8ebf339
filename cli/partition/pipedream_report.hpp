/// The result of `partition` for graphs of PipeDream, as text, JSON and stage map.
#pragma once

#include <string>

#include "cli/terminal/document.hpp"
#include "core/model/pipedream_problem.hpp"
#include "planner/partition/pipedream_partition.hpp"

namespace meshwright {

Document pipedream_text(const PipeDreamPartition& partition, const PipeDreamProblem& problem,
                        const std::string& name);
std::string pipedream_json(const PipeDreamPartition& partition, const PipeDreamProblem& problem);
/// {"0": [names of the nodes of stage 0], "1": …}, where stages inside of servers count.
std::string stage_map_json(const PipeDreamPartition& partition, const PipeDreamProblem& problem);

}  // namespace meshwright
