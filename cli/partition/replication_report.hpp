/// The result of `partition` with data and tensor parallelism, as text, JSON and stage map.
#pragma once

#include <string>

#include "cli/terminal/document.hpp"
#include "core/model/replication_problem.hpp"
#include "planner/partition/replication_partition.hpp"

namespace meshwright {

Document replication_text(const ReplicationPartition& partition, const ReplicationProblem& problem,
                          const std::string& name);
/// One row per stage.
/// `tensor`: devices that are one in the problem.
Table replicated_stages_table(const ReplicationPartition& partition,
                              const ReplicationProblem& problem, int tensor = 1);
std::string replication_json(const ReplicationPartition& partition,
                             const ReplicationProblem& problem);
/// {"0": [names of the nodes of stage 0], "1": …}
std::string stage_map_json(const ReplicationPartition& partition,
                           const ReplicationProblem& problem);

/// Why nothing fits.
std::string no_replication_text(const ReplicationProblem& problem);
std::string no_replication_json(const ReplicationProblem& problem);

}  // namespace meshwright
