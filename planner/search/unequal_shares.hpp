/// Unequal shares of the batch on heterogeneous clusters (core/plan/batch_shares.hpp): replicas on
/// slower nodes run fewer micro-batches. Beside the space of search(), whose replicas are equal.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "planner/search/search.hpp"
#include "planner/search/search_job.hpp"

namespace meshwright {

/// A replica takes `rest` + n * `microbatch` for n micro-batches.
struct ReplicaTime {
  Ticks microbatch, rest;
};
/// Micro-batches of every replica, multiples of `unit` above 0, with the earliest end of the last
/// replica. Of equal replicas, the first ones have more. Empty if `total` is not a multiple of
/// `unit`, or there are too few for all replicas. O(replicas * log(total time) + replicas log).
std::vector<int> balanced_microbatches(std::span<const ReplicaTime> replicas, std::int64_t total,
                                       int unit = 1);

/// With the earliest end of the last replica, in multiples of the pipeline ranks if the schedule
/// interleaves chunks; empty on homogeneous clusters, where all are equal, and where
/// balanced_microbatches() is empty.
BatchShares balanced_shares(const Strategy& strategy, const ModelGraph& model,
                            const Cluster& cluster, const CostModel& cost_model);
/// As flags: "--batch-shares 0-7:12+8-15:4".
std::string change_to_shares(const Strategy& strategy);

/// Gains that justify a plan that few training programs can run.
inline constexpr double kWorthwhileGainOfShares = 1e-2;

/// Puts the best plan found with unequal shares before plan 1 if it is faster by
/// kWorthwhileGainOfShares, and notes them in SearchCertificate::refined_by. Bounds exclude
/// layouts that cannot be faster; below the best layouts, choices are improved one at a time.
void try_unequal_shares(SearchResult& result, const SearchJob& job, const SearchOptions& options);

}  // namespace meshwright
