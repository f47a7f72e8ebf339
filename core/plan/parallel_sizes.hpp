/// The parallel sizes of a plan and the process groups that they form, as tables. Plan files,
/// flags, checks, search and reports go through the tables: a new size is a member and a row here.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/ids.hpp"
#include "core/base/kernel.hpp"
#include "core/plan/model_parallelism.hpp"

namespace meshwright {

// ---- sizes --------------------------------------------------------------------------------------

/// Parallel sizes by axis. ranks = data * pipeline * context * tensor; expert ranks are folded into
/// tensor * context * data of one pipeline rank (Megatron-LM's parallel folding).
struct ParallelDegrees {
  int data = 1;           ///< data-parallel size: model replicas, each with a share of the batch
  int pipeline = 1;       ///< pipeline-parallel size: devices per pipeline
  int chunks = 1;         ///< model chunks per device (virtual pipeline stages, "vpp")
  int context = 1;        ///< context-parallel size: shards of the sequence
  int tensor = 1;         ///< tensor-parallel size: shards of every weight matrix
  int expert = 1;         ///< expert-parallel size: shards of the set of experts
  int expert_tensor = 1;  ///< expert-tensor-parallel size: shards of every expert's matrices
  friend auto operator<=>(const ParallelDegrees&, const ParallelDegrees&) = default;
};

/// Sizes that were chosen; the others are free.
struct FixedSizes {
  std::optional<int> tensor, pipeline, chunks, data, context, expert, expert_tensor;
};

/// What a size divides. The ranks of an axis that shards tokens hold the same parameters.
enum class Sharding : std::uint8_t { kLayers, kWeights, kTokens };

struct ParallelSize {
  std::string_view key;        ///< in plan files; the flag without dashes
  std::string_view name;       ///< in sentences: "tensor-parallel size", as in Megatron-LM
  int ParallelDegrees::*size;  ///< 1: not parallel
  std::optional<int> FixedSizes::*fixed;
  Sharding shards;
  std::optional<Axis> axis = {};  ///< whose communication it causes; none: a size within another
  std::string_view help = name;   ///< of its flag
  int largest = 1 << 16;          ///< value of its flag
};
inline constexpr ParallelSize kTensorSize{.key = "tp",
                                          .name = "tensor-parallel size",
                                          .size = &ParallelDegrees::tensor,
                                          .fixed = &FixedSizes::tensor,
                                          .shards = Sharding::kWeights,
                                          .axis = Axis::kTensor};
inline constexpr ParallelSize kPipelineSize{.key = "pp",
                                            .name = "pipeline-parallel size",
                                            .size = &ParallelDegrees::pipeline,
                                            .fixed = &FixedSizes::pipeline,
                                            .shards = Sharding::kLayers,
                                            .axis = Axis::kPipeline};
inline constexpr ParallelSize kChunkCount{
    .key = "vpp",
    .name = "number of model chunks",
    .size = &ParallelDegrees::chunks,
    .fixed = &FixedSizes::chunks,
    .shards = Sharding::kLayers,
    .help = "model chunks (virtual pipeline stages) per pipeline rank"};
inline constexpr ParallelSize kDataSize{.key = "dp",
                                        .name = "data-parallel size",
                                        .size = &ParallelDegrees::data,
                                        .fixed = &FixedSizes::data,
                                        .shards = Sharding::kTokens,
                                        .axis = Axis::kData,
                                        .help = "data-parallel size (default: the remaining GPUs)",
                                        .largest = 1 << 20};
inline constexpr ParallelSize kContextSize{.key = "cp",
                                           .name = "context-parallel size",
                                           .size = &ParallelDegrees::context,
                                           .fixed = &FixedSizes::context,
                                           .shards = Sharding::kTokens,
                                           .axis = Axis::kContext};
inline constexpr ParallelSize kExpertSize{.key = "ep",
                                          .name = "expert-parallel size",
                                          .size = &ParallelDegrees::expert,
                                          .fixed = &FixedSizes::expert,
                                          .shards = Sharding::kWeights,
                                          .axis = Axis::kExpert};
inline constexpr ParallelSize kExpertTensorSize{.key = "etp",
                                                .name = "expert-tensor-parallel size",
                                                .size = &ParallelDegrees::expert_tensor,
                                                .fixed = &FixedSizes::expert_tensor,
                                                .shards = Sharding::kWeights,
                                                .help = "tensor-parallel size of the experts"};

/// In the order of plan files and flags.
inline constexpr std::array kParallelSizes{kTensorSize,  kPipelineSize, kChunkCount,      kDataSize,
                                           kContextSize, kExpertSize,   kExpertTensorSize};
/// In the order of diagnostics.
inline constexpr std::array kCheckedSizes{kDataSize,        kPipelineSize, kChunkCount,
                                          kContextSize,     kTensorSize,   kExpertSize,
                                          kExpertTensorSize};
/// In the order of descriptions: "TP8 PP4 DP2".
inline constexpr std::array kDescribedSizes{kTensorSize,  kPipelineSize, kChunkCount,
                                            kContextSize, kExpertSize,   kExpertTensorSize,
                                            kDataSize};
static_assert(kCheckedSizes.size() == kParallelSizes.size());
static_assert(kDescribedSizes.size() == kParallelSizes.size());

constexpr int size_along(const ParallelDegrees& degrees, Axis axis) {
  for (const ParallelSize& size : kParallelSizes)
    if (size.axis == axis) return degrees.*size.size;
  return 1;
}
static_assert(size_along({.data = 2, .context = 4}, Axis::kContext) == 4);

/// Sizes that are not fixed are 1.
constexpr ParallelDegrees degrees_of(const FixedSizes& fixed) {
  ParallelDegrees degrees;
  for (const ParallelSize& size : kParallelSizes)
    degrees.*size.size = (fixed.*size.fixed).value_or(1);
  return degrees;
}

// ---- process groups -----------------------------------------------------------------------------

/// Coordinates of one rank in the grid.
struct RankCoordinate {
  int pipeline = 0, data = 0, context = 0, tensor = 0;
  friend bool operator==(const RankCoordinate&, const RankCoordinate&) = default;
};

/// Distance in ranks between neighbors along each axis, for dense and for expert layers.
struct RankStrides {
  std::int64_t tensor = 1, context = 1, data = 1, pipeline = 1;
  std::int64_t expert_tensor = 1, expert = 1, expert_data = 1;
  std::int64_t expert_pipeline = 1;  ///< must equal `pipeline` (check_plan())
  friend bool operator==(const RankStrides&, const RankStrides&) = default;
};

/// One value per process group whose collectives are steps of a pass.
template <class T>
struct PerGroup {
  T tensor{}, context{}, expert{}, expert_tensor{};
};

/// Ranks that differ only in their position along one axis.
struct ProcessGroup {
  Axis axis = Axis::kTensor;
  int ParallelDegrees::*size = nullptr;  ///< null: the remaining ranks of a pipeline rank
  std::int64_t RankStrides::*stride = nullptr;
  int RankCoordinate::*coordinate = nullptr;                              ///< dense groups
  std::vector<RankId> PerGroup<std::vector<RankId>>::*members = nullptr;  ///< if in PerGroup
  GroupShape PerGroup<GroupShape>::*shape = nullptr;                      ///< if in PerGroup
};
/// The grid of the dense layers, in the order of Axis. The product of its sizes is the number of
/// ranks.
inline constexpr std::array kDenseGroups{
    ProcessGroup{Axis::kTensor, &ParallelDegrees::tensor, &RankStrides::tensor,
                 &RankCoordinate::tensor, &PerGroup<std::vector<RankId>>::tensor,
                 &PerGroup<GroupShape>::tensor},
    ProcessGroup{Axis::kContext, &ParallelDegrees::context, &RankStrides::context,
                 &RankCoordinate::context, &PerGroup<std::vector<RankId>>::context,
                 &PerGroup<GroupShape>::context},
    ProcessGroup{Axis::kData, &ParallelDegrees::data, &RankStrides::data, &RankCoordinate::data},
    ProcessGroup{Axis::kPipeline, &ParallelDegrees::pipeline, &RankStrides::pipeline,
                 &RankCoordinate::pipeline}};
/// The same ranks as the grid of the expert layers, see RankOrder.
inline constexpr std::array kExpertGroups{
    ProcessGroup{Axis::kTensor, &ParallelDegrees::expert_tensor, &RankStrides::expert_tensor,
                 nullptr, &PerGroup<std::vector<RankId>>::expert_tensor,
                 &PerGroup<GroupShape>::expert_tensor},
    ProcessGroup{Axis::kExpert, &ParallelDegrees::expert, &RankStrides::expert, nullptr,
                 &PerGroup<std::vector<RankId>>::expert, &PerGroup<GroupShape>::expert},
    ProcessGroup{Axis::kData, nullptr, &RankStrides::expert_data},
    ProcessGroup{Axis::kPipeline, &ParallelDegrees::pipeline, &RankStrides::expert_pipeline}};

/// Groups in PerGroup, those of the dense layers first.
inline constexpr auto kLayerGroups = [] {
  std::array<ProcessGroup, sizeof(PerGroup<char>)> groups{};
  std::size_t count = 0;
  for (const ProcessGroup& group : kDenseGroups)
    if (group.members != nullptr) groups[count++] = group;
  for (const ProcessGroup& group : kExpertGroups)
    if (group.members != nullptr) groups[count++] = group;
  return groups;
}();
static_assert(kLayerGroups.back().members != nullptr);

/// True if the size is a factor of the number of ranks.
constexpr bool spans_ranks(const ParallelSize& size) {
  for (const ProcessGroup& group : kDenseGroups)
    if (group.size == size.size) return true;
  return false;
}
constexpr std::int64_t rank_count(const ParallelDegrees& degrees) {
  std::int64_t ranks = 1;
  for (const ProcessGroup& group : kDenseGroups) ranks *= degrees.*group.size;
  return ranks;
}
static_assert(rank_count({.data = 2, .pipeline = 3, .chunks = 2, .tensor = 4, .expert = 2}) == 24);
/// Ranks of one pipeline rank.
constexpr std::int64_t stage_rank_count(const ParallelDegrees& degrees) {
  return rank_count(degrees) / degrees.pipeline;
}
constexpr std::int64_t stage_count(const ParallelDegrees& degrees) {
  return std::int64_t{degrees.pipeline} * degrees.chunks;
}
/// Ranks that hold the same dense parameters.
constexpr std::int64_t replica_count(const ParallelDegrees& degrees) {
  std::int64_t replicas = 1;
  for (const ParallelSize& size : kParallelSizes)
    if (size.shards == Sharding::kTokens) replicas *= degrees.*size.size;
  return replicas;
}
static_assert(replica_count({.data = 2, .context = 4, .tensor = 8}) == 8);
/// True for the first of the ranks that hold the same dense parameters.
constexpr bool is_first_replica(const RankCoordinate& rank) {
  for (const ParallelSize& size : kParallelSizes)
    for (const ProcessGroup& group : kDenseGroups)
      if (size.shards == Sharding::kTokens && group.size == size.size &&
          rank.*group.coordinate != 0)
        return false;
  return true;
}

RankStrides strides_of(const ParallelDegrees& degrees, const RankOrder& order);

/// In the default order the tensor axis varies fastest (inside a node), the pipeline axis slowest.
RankId rank_at(const ParallelDegrees& degrees, const RankCoordinate& coordinate,
               const RankOrder& order = {});
RankCoordinate coordinate_of(const ParallelDegrees& degrees, RankId rank,
                             const RankOrder& order = {});

}  // namespace meshwright
