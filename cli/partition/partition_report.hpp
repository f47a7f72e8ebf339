/// The result of the command `partition` as text, JSON and stage map.
#pragma once

#include <string>
#include <vector>

#include "cli/terminal/document.hpp"
#include "core/model/partition_problem.hpp"
#include "planner/partition/latency_partition.hpp"
#include "planner/partition/throughput_partition.hpp"

namespace meshwright {

Document partition_text(const ThroughputPartition& partition, const PartitionProblem& problem,
                        const std::string& name);
Document partition_text(const LatencyPartition& partition, const PartitionProblem& problem,
                        const std::string& name);
std::string partition_json(const ThroughputPartition& partition, const PartitionProblem& problem);
std::string partition_json(const LatencyPartition& partition, const PartitionProblem& problem);
/// {"0": [names of the nodes of stage 0], "1": …}
std::string stage_map_json(const std::vector<PartitionStage>& stages,
                           const PartitionProblem& problem);

/// Why nothing fits.
std::string no_partition_text(const PartitionProblem& problem);
std::string no_partition_json(const PartitionProblem& problem);

}  // namespace meshwright
