/// How replicas of the model keep their parameters equal, and who holds which part of what belongs
/// to a parameter: the data axis of a plan.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/kernel.hpp"
#include "core/units.hpp"

namespace meshwright {

enum class DataParallelKind : std::uint8_t {
  kCollective,       ///< all-reduce, or reduce-scatter and all-gather, by a communication library
  kRing,             ///< the same all-reduce as 2 (n - 1) exchanges with ring neighbours
  kParameterServer,  ///< workers push gradients to servers and pull weights, all in step
  kAsyncParameterServer,  ///< the same without waiting for other workers
  kOneProcess             ///< PyTorch's DataParallel: device 0 scatters, gathers and updates
};
inline constexpr int kDataParallelKindCount = 5;
/// "collective", "ring", "parameter-server", "async-parameter-server", "one-process".
std::string_view name_of(DataParallelKind kind);
std::optional<DataParallelKind> data_parallel_from_name(std::string_view name);

/// How gradients are cut into pieces that are reduced while the backward pass still runs.
enum class BucketRule : std::uint8_t {
  kNone,     ///< one piece per stage, reduced after its last backward
  kBytes,    ///< pieces of at least `bytes`
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
  kNeighbours,  ///< rank order: one node after another, so that it leaves each node once
  kAlternating  ///< first ranks of all nodes, then the second ones: every hop leaves its node
};
std::string_view name_of(RingOrder order);  ///< "neighbours", "alternating"
std::optional<RingOrder> ring_order_from_name(std::string_view name);

/// All that belongs to the data axis but its degree and the ZeRO level, which are in Strategy.
struct DataParallelism {
  DataParallelKind kind = DataParallelKind::kCollective;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::kAutomatic;
  GradientBuckets buckets;
  /// ZeRO 1 and 2: new parameters are gathered at the start of the next step, bucket by bucket in
  /// front of the forward passes that need them, instead of at the end of this one.
  bool overlap_gather = false;
  /// ZeRO 3: units (embedding, block, head) whose parameters are gathered ahead of their use.
  int prefetch = 1;
  /// ZeRO 3: gathered parameters are given back after the forward pass and gathered again for the
  /// backward pass; else they are held until the backward pass is over.
  bool reshard_after_forward = true;
  /// Ranks over which state is cut under ZeRO, neighbours on the data axis; gradients are then
  /// summed over the groups of them (hybrid sharding). 0: all of the data axis.
  int shard_ranks = 0;
  bool offload_optimizer = false;  ///< optimizer state in host memory, updated by the processor
  int servers = 1;                 ///< parameter servers, each with an equal part
  bool colocated_servers = false;  ///< on the last workers' devices instead of further ones
  RingOrder ring_order = RingOrder::kNeighbours;
  friend bool operator==(const DataParallelism&, const DataParallelism&) = default;
};

}  // namespace meshwright
