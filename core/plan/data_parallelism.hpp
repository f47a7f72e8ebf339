/// Data parallelism of a plan: how replicas synchronize their parameters, and how parameters,
/// gradients and optimizer state are sharded over them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/kernel.hpp"
#include "core/base/units.hpp"

namespace meshwright {

enum class DataParallelKind : std::uint8_t {
  kCollective,       ///< all-reduce, or reduce-scatter and all-gather, by a communication library
  kRing,             ///< all-reduce written out as 2 (n - 1) exchanges with ring neighbors
  kParameterServer,  ///< workers push gradients to servers and pull weights, synchronously
  kAsyncParameterServer,  ///< the same without waiting for other workers
  kOneProcess             ///< PyTorch's DataParallel: device 0 scatters, gathers and updates
};
inline constexpr int kDataParallelKindCount = 5;
constexpr bool has_servers(DataParallelKind kind) {
  return kind == DataParallelKind::kParameterServer ||
         kind == DataParallelKind::kAsyncParameterServer;
}
/// "collective", "ring", "parameter-server", "async-parameter-server", "one-process".
std::string_view name_of(DataParallelKind kind);
std::optional<DataParallelKind> data_parallel_from_name(std::string_view name);

/// How gradients are grouped into buckets that are reduced during the backward pass.
enum class BucketRule : std::uint8_t {
  kNone,     ///< no overlap: all gradients of a rank, after its last backward pass
  kBytes,    ///< buckets of at least `bytes`
  kPyTorch,  ///< 25 MiB, the first 1 MiB (torch.nn.parallel.DistributedDataParallel)
  kMegatron  ///< max(40 million, 1 million x replicas) elements (Megatron-LM --ddp-bucket-size)
};
struct GradientBuckets {
  BucketRule rule = BucketRule::kNone;
  Bytes bytes;  ///< for kBytes
  friend bool operator==(const GradientBuckets&, const GradientBuckets&) = default;
};
/// "none", "pytorch", "megatron", or a size: "26214400", "25MiB".
std::string to_text(const GradientBuckets& buckets);
std::optional<GradientBuckets> buckets_from_text(std::string_view text);

/// The order in which a ring visits its ranks.
enum class RingOrder : std::uint8_t {
  kNeighbors,   ///< rank order: node by node, so the ring leaves each node once
  kAlternating  ///< the first rank of every node, then the second: every hop is inter-node
};
inline constexpr int kRingOrderCount = 2;
std::string_view name_of(RingOrder order);  ///< "neighbours", "alternating"
std::optional<RingOrder> ring_order_from_name(std::string_view name);

/// Data-parallel options, except the degree and the ZeRO level, which are in Strategy.
struct DataParallelism {
  DataParallelKind kind = DataParallelKind::kCollective;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::kAutomatic;
  GradientBuckets buckets;
  /// ZeRO 1 and 2: gather updated parameters at the start of the next step, bucket by bucket before
  /// the forward passes that need them, instead of at the end of this step.
  bool overlap_gather = false;
  /// ZeRO 3: number of units (embedding, block, head) to gather ahead of their use.
  int prefetch = 1;
  /// ZeRO 3: free gathered parameters after the forward pass and gather them again for the backward
  /// pass; otherwise they are held until the backward pass has ended.
  bool reshard_after_forward = true;
  /// Hybrid sharding: number of neighboring data ranks that state is sharded over under ZeRO;
  /// gradients are also all-reduced across these shard groups. 0: shard over all data ranks.
  int shard_ranks = 0;
  bool offload_optimizer = false;  ///< optimizer state in host memory, updated by the CPU
  int servers = 1;                 ///< parameter servers, each holding an equal shard
  bool colocated_servers = false;  ///< servers share the last workers' devices
  RingOrder ring_order = RingOrder::kNeighbors;
  friend bool operator==(const DataParallelism&, const DataParallelism&) = default;
};

}  // namespace meshwright
