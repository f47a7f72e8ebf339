/// Questions that take several searches: which clusters can run a job and how fast, the fewest
/// devices on which it fits, the longest sequence that fits.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/base/error.hpp"
#include "core/cluster/cluster.hpp"
#include "core/cost/cost_model.hpp"
#include "core/model/model_graph.hpp"
#include "planner/search/search.hpp"

namespace meshwright {

/// Refers to model, cluster and cost model.
struct SizingJob {
  const ModelGraph& model;
  const Cluster& cluster;
  const CostModel& cost_model;
  Goal goal;
  FixedChoices choices;
};

struct SizingOptions {
  int top = 1;      ///< plans per job
  int threads = 0;  ///< 0: all cores
  /// Time since the start, and for all searches together; absent: no limit.
  std::function<Seconds()> elapsed = {};
  std::optional<Seconds> time_limit = {};
  std::function<bool()> canceled = {};
  std::function<void(std::size_t done, std::size_t of)> progress = {};
};

struct SizingResult {
  std::optional<SearchResult> search;  ///< absent: see `problems`, or canceled before its turn
  std::vector<Diagnostic> problems;    ///< why the job is impossible
  Seconds time;
};

/// 0 to count - 1, such that the first k are spread evenly: the middle, then the middles of both
/// halves, and so on.
std::vector<std::size_t> middle_first(std::size_t count);

/// One search per job, in the order of `jobs`. Searches run one after the other, the middle one
/// first, so that a canceled run has covered the range; each gets an equal share of the time that
/// is left. A search that exceeds its share goes on until it has found a plan, for up to the whole
/// time limit; then plans with micro-batches of 1 and full recomputation are searched instead.
/// `nearest` of infeasible results uses no more devices than the job. On heterogeneous clusters
/// nodes are selected (SearchOptions::selects_nodes), here and below.
std::vector<SizingResult> search_all(std::span<const SizingJob> jobs, const SizingOptions& options);

/// The same in the order of `jobs`, up to the first result that is enough. The result is shorter
/// than `jobs` if one was enough, or if canceled.
std::vector<SizingResult> search_until(
    std::span<const SizingJob> jobs, const SizingOptions& options,
    const std::function<bool(const SizingJob&, const SizingResult&)>& is_enough);

struct FewestDevices {
  std::optional<int> devices;  ///< absent: fits on none of the sizes that were tried
  /// True if every smaller size was tried and decided, or for absent `devices` every size.
  bool proved = false;
  std::vector<Diagnostic> problems;  ///< if the job is impossible on every size: on the last one
};
/// The smallest of `sizes` (ascending) on which a plan fits in memory; the number of devices of
/// `job` is ignored. Divisibility makes this not monotone, so sizes are tried one by one; after the
/// time limit only every size that is at least twice the last one. A size that is not decided
/// within half the time limit counts as one that does not fit.
FewestDevices fewest_devices(const SizingJob& job, std::span<const int> sizes,
                             const SizingOptions& options);

struct LongestSequence {
  std::optional<std::int64_t> length;  ///< absent: not even one unit fits
  std::int64_t unit = 0;               ///< tried: multiples of this
  bool at_limit = false;               ///< `length` is the limit
  bool proved = true;                  ///< false if a longer one was not decided in time
  std::vector<Diagnostic> problems;    ///< if the job is impossible: with one unit
};
inline constexpr std::int64_t kSequenceUnit = 1024;
/// The longest sequence for which a plan fits, at most `limit`: a multiple of kSequenceUnit and of
/// what the fixed tensor- and context-parallel sizes shard. Doubles the length while a plan fits,
/// then bisects: memory grows with the sequence, and all multiples of the unit divide alike. Time
/// limit as above.
LongestSequence longest_sequence(const SizingJob& job, std::int64_t limit,
                                 const SizingOptions& options);

}  // namespace meshwright
