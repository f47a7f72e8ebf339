/// What a device or a group of devices is asked to do, with concrete local shapes: the vocabulary
/// between lower() (which knows models and plans) and cost models and kernels (which do not).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "core/dtype.hpp"
#include "core/ids.hpp"
#include "core/units.hpp"

namespace meshwright {

enum class KernelKind : std::uint8_t {
  kGemm,         ///< batch x ([m, k] · [k, n])
  kGroupedGemm,  ///< `batch` GEMMs with m rows in each on average (experts)
  kAttention,    ///< fused: batch = sequences * heads, m queries, n keys, k key size, value_size
  kMemoryBound,  ///< norms, activations, residuals, softmax, embedding, permutation: bytes decide
  kOptimizer     ///< parameter update: bytes decide
};
inline constexpr int kKernelKindCount = 5;
std::string_view name_of(KernelKind kind);

/// What a kernel computes. Kernels of one routine, phase and dtype are the same code and differ in
/// size alone: what measurements are filed under. Formulas do not look at it.
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
  kSoftmax,  ///< of stored attention scores
  kRouting,  ///< softmax over experts and choice
  kDispatch,
  kCombine,
  kCrossEntropy,
  kUpdate
};
inline constexpr int kRoutineCount = 17;
std::string_view name_of(Routine routine);  ///< "product", "layer-norm", …
std::optional<Routine> routine_from_name(std::string_view name);

/// Which pass an operator's kernel belongs to. Weight gradients are apart so that schedules can
/// split the backward pass (Zero Bubble, arXiv 2401.10241).
enum class Phase : std::uint8_t { kForward, kBackwardInput, kBackwardWeight, kUpdate };
inline constexpr int kPhaseCount = 4;
/// "forward", "backward-input", "backward-weight", "update".
std::string_view name_of(Phase phase);
std::optional<Phase> phase_from_name(std::string_view name);

struct Kernel {
  KernelKind kind = KernelKind::kMemoryBound;
  Phase phase = Phase::kForward;
  Routine routine = Routine::kProduct;
  Dtype dtype = Dtype::kBf16;
  bool causal = false;  ///< attention: half of the scores are skipped
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  std::int64_t value_size = 0;
  Flops flops;           ///< arithmetic done (causal halves counted as half)
  Bytes memory_traffic;  ///< bytes read and written once each
  int launches = 1;      ///< kernels launched one after another
  /// Equal pieces that it is done in, one after another, so that communication can go on beside:
  /// rows of a GEMM, keys of attention. flops and memory_traffic are of all pieces together.
  int pieces = 1;
  bool on_host = false;  ///< by the processor, in host memory (kOptimizer alone)
  OperatorId source;     ///< operator it computes (for explanations and the executor)
  friend bool operator==(const Kernel&, const Kernel&) = default;
};

/// The axis of parallelism that a communication serves; exposed communication is reported by axis.
enum class Axis : std::uint8_t { kTensor, kContext, kExpert, kData, kPipeline };
inline constexpr int kAxisCount = 5;
std::string_view name_of(Axis axis);  ///< "tp", "cp", "ep", "dp", "pp"

enum class CollectiveKind : std::uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kBroadcast,  ///< from the first member to all
  kReduce,     ///< to the first member
  kScatter,    ///< the first member gives each its part
  kGather,     ///< the first member collects all parts
  /// Every member sends to the next one, the last to the first; `rounds` times in a row.
  kRingExchange,
  kPush,          ///< workers (first members) send gradients to servers (last members)
  kPull,          ///< servers send weights to workers
  kCopyToHost,    ///< one member: device to host memory
  kCopyFromHost,  ///< one member: host to device memory
};
inline constexpr int kCollectiveKindCount = 13;
std::string_view name_of(CollectiveKind kind);

/// How an all-reduce, reduce-scatter or all-gather is carried out (NCCL_ALGO).
enum class CollectiveAlgorithm : std::uint8_t {
  kAutomatic,  ///< what NCCL's tuner chooses
  kRing,
  kTree,         ///< all-reduce only: two binary trees over nodes, chains inside
  kNvls,         ///< reduction in the NVLink switch; between nodes a tree on top
  kHierarchical  ///< all-reduce only: reduce-scatter in nodes, all-reduce across, all-gather
};
inline constexpr int kCollectiveAlgorithmCount = 5;
/// "auto", "ring", "tree", "nvls", "hierarchical".
std::string_view name_of(CollectiveAlgorithm algorithm);
std::optional<CollectiveAlgorithm> collective_algorithm_from_name(std::string_view name);

/// Where the ranks of a group sit: all that collective models need.
struct GroupShape {
  int ranks = 1;
  int nodes = 1;            ///< nodes they are spread over, evenly
  int groups_per_node = 1;  ///< groups of this kind that use a node's network ports at once
  friend bool operator==(const GroupShape&, const GroupShape&) = default;
};

/// Consecutive elements of one part of the model's parameters on one rank: in the order of layers,
/// operators and their parameters, dense and expert ones each counted for themselves.
struct ParameterRange {
  std::int32_t part = -1;  ///< see Placement::part_of_stage; -1: no parameters
  bool expert = false;
  std::int64_t first = 0, count = 0;
  friend bool operator==(const ParameterRange&, const ParameterRange&) = default;
};

/// How a collective inside a layer shares time with kernels that stand beside it. With c and k the
/// times of the two alone, what stays visible is max(0, c - k (p - 1) / p): of p pieces one piece
/// of the kernels runs before the communication behind it, or after the one in front of it, and the
/// rest side by side. Kernels are not slowed down by it. Worked number: an all-gather of 8 ms in
/// front of a GEMM of 8 ms in 8 pieces: the GEMM waits 1 ms in all.
struct Overlap {
  int kernels = 0;  ///< 0: blocks; n: beside the n steps behind it, -n: in front, all kernels
  int pieces = 0;   ///< p; 0: neither needs the other, so all of it may be hidden
  friend bool operator==(const Overlap&, const Overlap&) = default;
};

struct Collective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  Axis axis = Axis::kData;
  /// The whole buffer, as NCCL counts: all-reduce, broadcast, reduce: the vector; all-gather,
  /// gather: the gathered result; reduce-scatter: the unreduced input; scatter: all parts;
  /// all-to-all: what one rank sends (own part too); ring exchange: what one member sends in a
  /// round; push and pull: what one worker sends or gets in all.
  Bytes bytes;
  GroupShape group;
  /// What it serves inside a layer, -1 at the end of a step (gradients, parameters, their norm):
  /// the operator, the pass, and the activation that travels (backward: its gradient). The tensor
  /// is -1 where all inputs of `source` but the first travel together: keys and values.
  OperatorId source{-1};
  TensorId tensor{-1};
  Phase phase = Phase::kForward;
  Overlap overlap = {};
  /// Data axis: whose gradients (or new values) travel.
  ParameterRange parameters = {};
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::kAutomatic;
  Bytes sent_across_nodes{};  ///< all-to-all in two hops: what one rank sends to other nodes
  int servers = 0;            ///< push and pull: the last members, each with an equal part
  bool colocated = false;     ///< push and pull: servers run on workers' devices
  int node_exits = 1;         ///< ring exchange: hops that leave one node at the same time
  int rounds = 1;             ///< ring exchange: times in a row
  /// Ring exchange: its number within a ring all-reduce of n ranks: rounds 0 to n - 2 add what
  /// arrives, n - 1 to 2 n - 3 replace with it; rank i sends chunk (i - round) mod n.
  int first_round = 0;
  friend bool operator==(const Collective&, const Collective&) = default;
};

/// A point-to-point message.
struct Transfer {
  Bytes bytes;
  Axis axis = Axis::kPipeline;
  bool crosses_nodes = false;
  int flows_per_node = 1;  ///< equal messages leaving the node at the same time
  friend bool operator==(const Transfer&, const Transfer&) = default;
};

using Step = std::variant<Kernel, Collective>;

}  // namespace meshwright
