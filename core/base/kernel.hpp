/// Kernels, collectives and messages with concrete local shapes: the interface between lower(),
/// which knows models and plans, and the cost models and kernels, which do not.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "core/base/collective_kinds.hpp"
#include "core/base/dtype.hpp"
#include "core/base/ids.hpp"
#include "core/base/units.hpp"

namespace meshwright {

enum class KernelKind : std::uint8_t {
  kGemm,         ///< batch x ([m, k] · [k, n])
  kGroupedGemm,  ///< `batch` GEMMs with m rows each on average (experts)
  kAttention,    ///< fused: batch = sequences * heads, m queries, n keys, k key size, value_size
  kMemoryBound,  ///< norms, activations, residuals, softmax, embedding, permutation
  kOptimizer     ///< parameter update, memory-bound
};
inline constexpr int kKernelKindCount = 5;
std::string_view name_of(KernelKind kind);

/// What a kernel computes. Kernels with the same routine, phase and dtype share one implementation
/// and differ only in size; measurements are keyed by it. Formulas do not depend on it.
enum class Routine : std::uint8_t {
  kProduct,
  kAttention,
  kEmbedding,
  kLayerNorm,
  kRmsNorm,
  kGelu,
  kRelu,
  kSwiGlu,
  kResidual,
  kRotary,
  kBias,     ///< column sums of a gradient
  kSoftmax,  ///< on materialized attention scores
  kRouting,  ///< softmax over experts and top-k
  kDispatch,
  kCombine,
  kCrossEntropy,
  kUpdate,
  kSquaredRelu,
  kCast  ///< quantizes an operand, or transposes a quantized one
};
inline constexpr int kRoutineCount = 19;
std::string_view name_of(Routine routine);  ///< "product", "layer-norm", …

/// The pass that an operator's kernel belongs to. Weight gradients are separate so that schedules
/// can split the backward pass (Zero Bubble, arXiv 2401.10241).
enum class Phase : std::uint8_t { kForward, kBackwardInput, kBackwardWeight, kUpdate };
inline constexpr int kPhaseCount = 4;
/// "forward", "backward-input", "backward-weight", "update".
std::string_view name_of(Phase phase);

struct Kernel {
  KernelKind kind = KernelKind::kMemoryBound;
  Phase phase = Phase::kForward;
  Routine routine = Routine::kProduct;
  Dtype dtype = Dtype::kBf16;
  bool causal = false;   ///< attention: the masked half of the scores is skipped
  bool dropout = false;  ///< fused attention: draws random numbers for every score
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  std::int64_t value_size = 0;
  std::optional<ProductFormat> format = {};  ///< of a product's operands; absent: that of dtype
  Flops flops;                               ///< operations performed (causal attention: half)
  Bytes memory_traffic;                      ///< bytes read plus bytes written
  int launches = 1;                          ///< kernels launched one after another
  /// Number of equal chunks that the kernel is split into so that communication can overlap: rows
  /// of a GEMM, keys of attention. flops and memory_traffic are totals over all chunks.
  int pieces = 1;
  /// Sizes depend on counts that earlier kernels compute: dropless dispatch to experts. The host
  /// may have to read them before it launches this kernel.
  bool needs_counts = false;
  bool on_host = false;  ///< runs on the CPU, in host memory (kOptimizer only)
  OperatorId source;     ///< the operator it implements (for explanations and the executor)
  friend bool operator==(const Kernel&, const Kernel&) = default;
};

/// The parallelism axis that a communication belongs to; exposed communication is reported by axis.
/// In the order in which axes are mapped to ranks by default, neighboring ranks first.
enum class Axis : std::uint8_t { kTensor, kContext, kExpert, kData, kPipeline };
struct AxisName {
  Axis axis;
  std::string_view key;          ///< "tp"
  std::string_view parallelism;  ///< "tensor": in sentences about "tensor parallelism"
};
inline constexpr std::array kAxisNames{
    AxisName{Axis::kTensor, "tp", "tensor"}, AxisName{Axis::kContext, "cp", "context"},
    AxisName{Axis::kExpert, "ep", "expert"}, AxisName{Axis::kData, "dp", "data"},
    AxisName{Axis::kPipeline, "pp", "pipeline"}};
inline constexpr int kAxisCount = static_cast<int>(kAxisNames.size());
inline constexpr auto kAxes = [] {
  std::array<Axis, kAxisCount> axes{};
  for (std::size_t a = 0; a < axes.size(); ++a) axes[a] = kAxisNames[a].axis;
  return axes;
}();
constexpr std::string_view name_of(Axis axis) {
  return kAxisNames[static_cast<std::size_t>(axis)].key;
}
constexpr std::string_view parallelism_of(Axis axis) {
  return kAxisNames[static_cast<std::size_t>(axis)].parallelism;
}
static_assert([] {
  for (int a = 0; a < kAxisCount; ++a)
    if (kAxes[static_cast<std::size_t>(a)] != static_cast<Axis>(a)) return false;
  return true;
}());

/// Algorithm of an all-reduce, reduce-scatter or all-gather (NCCL_ALGO).
enum class CollectiveAlgorithm : std::uint8_t {
  kAutomatic,  ///< chosen by NCCL's tuner
  kRing,
  kTree,         ///< all-reduce only: double binary tree over nodes, chains inside a node
  kNvls,         ///< reduction in the NVLink switch (NVLS); between nodes NVLS tree
  kHierarchical  ///< all-reduce only: intra-node reduce-scatter, inter-node all-reduce, all-gather
};
inline constexpr int kCollectiveAlgorithmCount = 5;
/// "auto", "ring", "tree", "nvls", "hierarchical".
std::string_view name_of(CollectiveAlgorithm algorithm);
std::optional<CollectiveAlgorithm> collective_algorithm_from_name(std::string_view name);

/// How the ranks of a group are distributed over nodes: all that collective models need.
struct GroupShape {
  int ranks = 1;
  int nodes = 1;            ///< nodes that the ranks are evenly spread over
  int groups_per_node = 1;  ///< groups of this kind that share a node's network ports
  friend bool operator==(const GroupShape&, const GroupShape&) = default;
};

/// A range of one model part's parameters on one rank, in the order of layers, operators and their
/// parameters. Dense and expert parameters are numbered separately.
struct ParameterRange {
  std::int32_t part = -1;  ///< see Placement::part_of_stage; -1: no parameters
  bool expert = false;
  std::int64_t first = 0, count = 0;
  friend bool operator==(const ParameterRange&, const ParameterRange&) = default;
};

/// How a collective inside a layer overlaps with adjacent kernels. With c and k the durations of
/// collective and kernels alone and p chunks, the exposed time is max(0, c - k (p - 1) / p): one
/// chunk of the kernels cannot overlap (the first one runs before the communication that follows,
/// or the last one after the communication that precedes), the others can. Kernels are not slowed
/// down. Example: an 8 ms all-gather before an 8 ms GEMM in 8 chunks delays the GEMM by 1 ms.
///
/// With `other_microbatch`, kernels of another micro-batch run at the same time, as many as the
/// pass of the collective has. A collective that takes a share s of the multiprocessors for the
/// time c lets kernels worth (1 - s) c run meanwhile: it is exposed for s c, or c less the kernels
/// that are left if there are not enough.
struct Overlap {
  int kernels = 0;  ///< 0: blocks; n > 0: overlaps the next n steps; n < 0: the previous -n steps
  int pieces = 0;   ///< p; 0: kernels and collective are independent and may overlap completely
  bool other_microbatch = false;
  friend bool operator==(const Overlap&, const Overlap&) = default;
};

struct Collective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  Axis axis = Axis::kData;
  /// The whole buffer, as NCCL counts. All-reduce, broadcast, reduce: the vector; all-gather,
  /// gather: the gathered result; reduce-scatter: the unreduced input; scatter: all shards;
  /// all-to-all: what one rank sends (including to itself); ring exchange: what one member sends
  /// per round; push and pull: what one worker sends or receives in total.
  Bytes bytes;
  GroupShape group;
  /// The collective site inside a layer: operator, phase, and the activation that is communicated
  /// (backward: its gradient); -1 at the end of a step (gradients, parameters, gradient norm).
  /// `tensor` is -1 if all inputs of `source` except the first travel together: keys and values.
  OperatorId source{-1};
  TensorId tensor{-1};
  Phase phase = Phase::kForward;
  Overlap overlap = {};
  /// Data axis: the parameters whose gradients or updated values are communicated.
  ParameterRange parameters = {};
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::kAutomatic;
  Bytes sent_across_nodes{};  ///< two-hop all-to-all: what one rank sends to other nodes
  int servers = 0;            ///< push and pull: number of servers (last members), equal shards
  bool colocated = false;     ///< push and pull: servers run on workers' devices
  int node_exits = 1;         ///< ring exchange: hops that leave one node concurrently
  int rounds = 1;             ///< ring exchange: number of consecutive rounds
  /// Ring exchange: first round within a ring all-reduce of n ranks. Rounds 0 to n - 2 add the
  /// received chunk, rounds n - 1 to 2 n - 3 overwrite with it; rank i sends chunk
  /// (i - round) mod n.
  int first_round = 0;
  friend bool operator==(const Collective&, const Collective&) = default;
};

/// A point-to-point message.
struct Transfer {
  Bytes bytes;
  Axis axis = Axis::kPipeline;
  bool crosses_nodes = false;
  int flows_per_node = 1;  ///< equal messages that leave the node concurrently
  friend bool operator==(const Transfer&, const Transfer&) = default;
};

using Step = std::variant<Kernel, Collective>;

}  // namespace meshwright
