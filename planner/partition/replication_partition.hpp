/// Pipeline stages with data and tensor parallelism, with the smallest time of the slowest stage.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/model/replication_problem.hpp"

namespace meshwright {

struct ReplicatedStage {
  std::vector<std::int32_t> nodes;    ///< ascending
  std::vector<std::int32_t> variant;  ///< of each node
  int data = 1, tensor = 1;           ///< degrees
  int inflight = 1;                   ///< micro-batches in flight per replica
  Seconds time;                       ///< per micro-batch
  Bytes memory;                       ///< per device
};

struct ReplicationPartition {
  std::vector<ReplicatedStage> stages;
  Seconds time;         ///< of the slowest stage
  Seconds lower_bound;  ///< for the choice of variants of Piper
  /// Whether no partition is faster, up to rounding.
  bool is_optimal() const { return time.value - lower_bound.value <= 1e-9 * time.value; }
  int devices = 0;  ///< used
  std::int64_t down_sets = 0;
};

/// Empty if nothing fits in memory. The problem must be within the limits of files and without
/// cycles. If the graph has more than `most_down_sets`, or too many stages, only stages that are
/// consecutive in one topological order are searched, and the lower bound is that of the work.
///
/// A stage with data degree d of which, with the later stages, the data degrees add up to s, has
/// ceil(s / d) micro-batches in flight. Its time on a link of bandwidth b, for N micro-batches per
/// batch and p bytes of parameters, is
///
///   (sum of times + 2 (crossing bytes) / b) / d + 4 (d - 1) p / (d N b)
///
/// The variant of a node is the fastest one; if the stage does not fit, nodes change to their other
/// variant in the order of added time per saved byte, until it does.
///
/// Method: for a threshold T, every up-set of the graph has a Pareto front of (s, devices) of the
/// last stages with times of at most T; the threshold is bisected. For each stage and tensor degree
/// only the smallest data degree below T matters, so that the number of devices does not.
std::optional<ReplicationPartition> partition_with_replication(const ReplicationProblem& problem,
                                                               std::size_t most_down_sets = 20'000);

/// Times, memory and micro-batches in flight of given nodes, variants and degrees, from their
/// definition. The reference for what is above.
void price_stages(const ReplicationProblem& problem, std::vector<ReplicatedStage>& stages);

}  // namespace meshwright
