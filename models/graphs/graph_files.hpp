/// Operator graphs with costs, as published planners read them. All input is untrusted: sizes are
/// limited, and errors are InputErrors with file and position.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "core/model/chain_problem.hpp"
#include "core/model/partition_problem.hpp"
#include "core/model/pipedream_problem.hpp"
#include "core/model/replication_problem.hpp"
#include "core/model/sharding_problem.hpp"
#include "models/text/named_text.hpp"

namespace meshwright {

/// JSON of msr-fiddle/dnn-partitioning: nodes with "fpgaLatency" and "cpuLatency" in ms and "size"
/// in bytes; edges with "cost" in ms, the same for all edges of a source. The result passes
/// check_partition_problem().
PartitionProblem read_dnn_partitioning(const NamedText& file);

/// JSON of msr-fiddle/piper: nodes with "TMPCs", by number of tensor-parallel devices up to two
/// variants with "timePerSample" in s and sizes in bytes; "communicationCost" of edges in bytes.
ReplicationProblem read_piper(const NamedText& file);

/// graph.txt of msr-fiddle/pipedream, as its profiler writes it: nodes with times in ms and sizes
/// in bytes, and their edges. Without inputs, and without items of tuples that nothing reads. The
/// levels of links are not in the file.
PipeDreamProblem read_pipedream(const NamedText& file);

/// JSON of the IOPDDL contest: nodes with "intervals", "costs" and "usages", edges with the costs
/// of all pairs of strategies, and a "usage_limit".
ShardingProblem read_iopddl(const NamedText& file);

/// Tables FOLDER/MODEL_mbsM_tpT_algoA.csv, with a row per operator, as the profiler of Aceso writes
/// them for GPT, T5 and ResNet; times in us, sizes in MB. Beside them
/// prim_MODEL_COLLECTIVE_Ngpus.csv and p2p_{intra,inter}_node.csv. `path` is FOLDER/MODEL. Tables
/// of transformers have one layer, which is repeated. Cluster and batch are not in the files.
ChainProblem read_aceso(const std::string& path, std::optional<int> layers);
/// Whether there are such tables.
bool is_aceso_profile(const std::string& path);

using OperatorGraph =
    std::variant<PartitionProblem, ReplicationProblem, PipeDreamProblem, ShardingProblem>;
/// Any of the formats, told apart by their contents.
OperatorGraph read_operator_graph(const NamedText& file);

}  // namespace meshwright
