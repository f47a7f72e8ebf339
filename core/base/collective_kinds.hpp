/// The collectives, and what planners, cost models, importers and calibration know about each. A
/// new one is a value of CollectiveKind and its row in kCollectives.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "core/base/check.hpp"

namespace meshwright {

enum class CollectiveKind : std::uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kBroadcast,  ///< from the first member to all
  kReduce,     ///< to the first member
  kScatter,    ///< from the first member, one shard to each
  kGather,     ///< to the first member, one shard from each
  /// Every member sends to the next one, the last to the first, for `rounds` rounds.
  kRingExchange,
  kPush,          ///< workers (first members) send gradients to servers (last members)
  kPull,          ///< servers send weights to workers
  kCopyToHost,    ///< single member: device to host memory
  kCopyFromHost,  ///< single member: host to device memory
};

/// Who sends to whom. Time and traffic depend on it; see device_cost_model.cpp and
/// collective_load.hpp.
enum class TrafficPattern : std::uint8_t {
  kRing,           ///< shards around a ring (or NCCL's other algorithms for the same result)
  kPipelinedRing,  ///< the whole buffer around a ring, from or to the first member
  kPairs,          ///< a shard from each member to each other
  kFromFirst,      ///< a shard from the first member to each other
  kToFirst,
  kNeighbors,  ///< the buffer from each member to the next
  kToServers,
  kFromServers,
  kHost  ///< between a device and its host: no link of the network
};

constexpr bool is_ring(TrafficPattern pattern) {
  return pattern == TrafficPattern::kRing || pattern == TrafficPattern::kPipelinedRing;
}

/// Steps of a ring of n members: per_member * n + further, each of bytes / n over every hop.
struct RingStepCount {
  int per_member = 0, further = 0;
};

struct CollectiveTraits {
  CollectiveKind kind;
  TrafficPattern pattern;
  bool is_calibrated = false;       ///< measured by `calibrate`, stored in calibration files
  RingStepCount steps = {};         ///< of rings; as NCCL's tuning model counts
  std::string_view name;            ///< in plans, reports and calibration files
  std::string_view nccl_test = {};  ///< program of nccl-tests, without "_perf"; empty: none
  std::array<std::string_view, 2> in_traces = {};  ///< parts of PyTorch's names for it
};

inline constexpr CollectiveTraits kCollectives[]{
    {.kind = CollectiveKind::kAllReduce,
     .pattern = TrafficPattern::kRing,
     .is_calibrated = true,
     .steps = {2, -2},
     .name = "all-reduce",
     .nccl_test = "all_reduce",
     .in_traces = {"allreduce", "all_reduce"}},
    {.kind = CollectiveKind::kAllGather,
     .pattern = TrafficPattern::kRing,
     .is_calibrated = true,
     .steps = {1, -1},
     .name = "all-gather",
     .nccl_test = "all_gather",
     .in_traces = {"allgather", "all_gather"}},
    {.kind = CollectiveKind::kReduceScatter,
     .pattern = TrafficPattern::kRing,
     .is_calibrated = true,
     .steps = {1, -1},
     .name = "reduce-scatter",
     .nccl_test = "reduce_scatter",
     .in_traces = {"reduce_scatter"}},
    {.kind = CollectiveKind::kAllToAll,
     .pattern = TrafficPattern::kPairs,
     .is_calibrated = true,
     .name = "all-to-all",
     .nccl_test = "alltoall",
     .in_traces = {"alltoall", "all_to_all"}},
    {.kind = CollectiveKind::kBroadcast,
     .pattern = TrafficPattern::kPipelinedRing,
     .is_calibrated = true,
     .steps = {1, 0},
     .name = "broadcast",
     .nccl_test = "broadcast",
     .in_traces = {"broadcast"}},
    {.kind = CollectiveKind::kReduce,
     .pattern = TrafficPattern::kPipelinedRing,
     .steps = {1, 0},
     .name = "reduce",
     .nccl_test = "reduce"},
    {.kind = CollectiveKind::kScatter,
     .pattern = TrafficPattern::kFromFirst,
     .name = "scatter",
     .nccl_test = "scatter"},
    {.kind = CollectiveKind::kGather,
     .pattern = TrafficPattern::kToFirst,
     .name = "gather",
     .nccl_test = "gather"},
    {.kind = CollectiveKind::kRingExchange,
     .pattern = TrafficPattern::kNeighbors,
     .name = "ring-exchange"},
    {.kind = CollectiveKind::kPush, .pattern = TrafficPattern::kToServers, .name = "push"},
    {.kind = CollectiveKind::kPull, .pattern = TrafficPattern::kFromServers, .name = "pull"},
    {.kind = CollectiveKind::kCopyToHost, .pattern = TrafficPattern::kHost, .name = "to-host"},
    {.kind = CollectiveKind::kCopyFromHost, .pattern = TrafficPattern::kHost, .name = "from-host"},
};
inline constexpr int kCollectiveKindCount = static_cast<int>(std::size(kCollectives));

constexpr const CollectiveTraits& traits_of(CollectiveKind kind) {
  return kCollectives[static_cast<std::size_t>(kind)];
}
static_assert([] {
  for (std::size_t i = 0; i < std::size(kCollectives); ++i)
    if (kCollectives[i].kind != static_cast<CollectiveKind>(i)) return false;
  return true;
}());

constexpr std::string_view name_of(CollectiveKind kind) { return traits_of(kind).name; }

constexpr bool is_host_copy(CollectiveKind kind) {
  return traits_of(kind).pattern == TrafficPattern::kHost;
}

/// Number of steps of a ring of `members`; the collective must be one of the ring patterns.
constexpr double ring_steps(CollectiveKind kind, double members) {
  const RingStepCount& steps = traits_of(kind).steps;
  MW_CHECK(steps.per_member > 0);
  return steps.per_member * members + steps.further;
}

}  // namespace meshwright
