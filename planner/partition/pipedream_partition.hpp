/// Replicated pipeline stages on a hierarchy of links, with the smallest time of the slowest stage
/// or transfer: the objective of PipeDream.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/pipedream_problem.hpp"

namespace meshwright {

struct PipeDreamStage {
  std::vector<std::int32_t> nodes;    ///< ascending
  int replicas = 1;                   ///< on groups of the level below, or on devices
  std::vector<PipeDreamStage> inner;  ///< its stages inside each group; empty on the first level
  Seconds time;  ///< per minibatch, with the transfers that PipeDream overlaps with it
};

struct PipeDreamPartition {
  std::vector<PipeDreamStage> stages;  ///< of the outermost level
  Seconds time;                        ///< of the slowest stage
  Seconds lower_bound;
  std::int64_t cuts = 0;  ///< down-sets of the graph that were possible ends of stages
};

/// A stage of level l with work C (on the first level the sum of times, else the time of its best
/// stages inside a group of level l - 1), p bytes of parameters, and m replicas on links of
/// bandwidth b takes
///
///   (C + 4 (m - 1) p / (m b)) / m,  and at least 2 a / (m b)
///
/// for the a bytes that cross its begin or its end; the first stage of a group has no such
/// transfers, nor has the end of the graph, and its all-reduce is divided by the size of the level
/// below (as PipeDream computes it, with --activation_compression_ratio 1). Its replicas of all
/// levels fit on the devices; PipeDream uses all devices, this search at most all.
///
/// Exact over all down-sets if there are at most `most_down_sets`; otherwise over the prefixes of
/// some topological orders, with the work as lower bound. `problem.levels` must not be empty.
PipeDreamPartition partition_as_pipedream(const PipeDreamProblem& problem,
                                          std::size_t most_down_sets = 40'000);

/// The times of given stages of all levels, from their definition; returns the slowest. The
/// reference for what is above.
Seconds price_stages(const PipeDreamProblem& problem, std::vector<PipeDreamStage>& stages);

}  // namespace meshwright
