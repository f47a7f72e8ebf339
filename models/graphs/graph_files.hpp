/// Operator graphs with costs, as published planners read them. All input is untrusted: sizes are
/// limited, and errors are InputErrors with file and position.
#pragma once

#include <string_view>

#include "core/model/partition_problem.hpp"
#include "models/text/named_text.hpp"

namespace meshwright {

/// JSON of msr-fiddle/dnn-partitioning: nodes with "fpgaLatency" and "cpuLatency" in ms and "size"
/// in bytes; edges with "cost" in ms, the same for all edges of a source. The result passes
/// check_partition_problem().
PartitionProblem read_dnn_partitioning(const NamedText& file);

}  // namespace meshwright
