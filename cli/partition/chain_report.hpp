/// The result of `partition` for tables of Aceso, as text, JSON and configuration of Aceso.
#pragma once

#include <optional>
#include <string>

#include "cli/terminal/document.hpp"
#include "planner/partition/chain_partition.hpp"

namespace meshwright {

Document chain_text(const ChainPartition& partition, const ChainProblem& problem,
                    const std::string& name);
/// {"schema", "devices_per_node", "nodes", "global_batch", "microbatch", "step_ns",
/// "lower_bound_ns", "gap", "proved_optimal", "stages", "infeasible"}
std::string chain_json(const ChainPartition& partition, const ChainProblem& problem);
/// What the search of Aceso saves and its programs read, but for the shape of the model. `name`:
/// FOLDER/MODEL_SIZE of the tables.
std::string aceso_json(const ChainPartition& partition, const ChainProblem& problem,
                       const std::string& name, std::optional<int> layers);

/// Why nothing fits.
std::string no_chain_text(const ChainProblem& problem);
std::string no_chain_json(const ChainProblem& problem);

}  // namespace meshwright
