/// Data-parallel groups and their collectives.
#pragma once

#include <vector>

#include "core/base/kernel.hpp"
#include "core/lowering/folded_graph.hpp"
#include "core/plan/job_groups.hpp"
#include "core/plan/plan.hpp"

namespace meshwright {

struct LoweringContext;

/// A group of ranks holding the same parameters, and its location among the replicas.
struct DataGroup {
  GroupShape shape;
  CollectiveSpread spread;
};
struct DataGroups {
  DataGroup all;     ///< all ranks holding the same parameters
  DataGroup shard;   ///< ranks that state is sharded over: all, or neighbors (hybrid sharding)
  DataGroup across;  ///< ranks holding the same shard in different shard groups
};
/// `expert`: the groups for expert parameters.
DataGroups data_groups_of(const Strategy& strategy, const JobGroups& groups, bool expert);

/// One data-parallel collective; runs after the previous one in its list. Gathers and reductions of
/// a group share a communicator, and collectives of a communicator run one after another on one
/// stream: "any collectives, even if issued in different streams, contend for the same per-device
/// NCCL stream" (PyTorch torch/distributed/fsdp/api.py, BackwardPrefetch). FSDP1 and FSDP2 have one
/// communicator; Megatron-FSDP has one unless --create-all-gather-group is set. With shard groups
/// inside nodes, reductions across them have another communicator and other links.
struct DataExchange {
  Collective collective;
  CollectiveSpread spread;
  Stream stream = Stream::kData;
};
struct ReductionOptions {
  int copies = 1;           ///< stages that hold the part
  bool sums_groups = true;  ///< hybrid sharding: also reduce across the shard groups
};
/// The collectives that reduce the gradients of a range: all-reduce (ZeRO 0) or reduce-scatter,
/// with the plan's algorithm. Empty if the group has one rank.
std::vector<DataExchange> reduce_exchanges(const ParameterRange& range, const Strategy& strategy,
                                           const JobGroups& groups,
                                           const ReductionOptions& options);
/// The collectives that gather the updated values of a range sharded over its shard group. With
/// Precision::fp8_parameters, quantized parameters are gathered in fp8.
std::vector<DataExchange> gather_exchanges(const ParameterRange& range, const Strategy& strategy,
                                           const LoweringContext& context, int copies);

}  // namespace meshwright
