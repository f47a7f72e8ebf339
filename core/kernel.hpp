/// What a device or a group of devices is asked to do, with concrete local shapes: the vocabulary
/// between lower() (which knows models and plans) and cost models and kernels (which do not).
#pragma once

#include <cstdint>
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

/// Which pass an operator's kernel belongs to. Weight gradients are apart so that schedules can
/// split the backward pass (Zero Bubble, arXiv 2401.10241).
enum class Phase : std::uint8_t { kForward, kBackwardInput, kBackwardWeight, kUpdate };

struct Kernel {
  KernelKind kind = KernelKind::kMemoryBound;
  Phase phase = Phase::kForward;
  Dtype dtype = Dtype::kBf16;
  bool causal = false;  ///< attention: half of the scores are skipped
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  std::int64_t value_size = 0;
  Flops flops;           ///< arithmetic done (causal halves counted as half)
  Bytes memory_traffic;  ///< bytes read and written once each
  int launches = 1;      ///< kernels launched one after another
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
  kBroadcast
};
std::string_view name_of(CollectiveKind kind);

/// Where the ranks of a group sit: all that collective models need.
struct GroupShape {
  int ranks = 1;
  int nodes = 1;            ///< nodes they are spread over, evenly
  int groups_per_node = 1;  ///< groups of this kind that use a node's network ports at once
  friend bool operator==(const GroupShape&, const GroupShape&) = default;
};

struct Collective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  Axis axis = Axis::kData;
  /// The whole buffer, as NCCL counts: all-reduce, broadcast: the vector; all-gather: the gathered
  /// result; reduce-scatter: the unreduced input; all-to-all: what one rank sends (own part too).
  Bytes bytes;
  GroupShape group;
  /// What it serves inside a layer, -1 at the end of a step (gradients, parameters, their norm):
  /// the operator, the pass, and the activation that travels (backward: its gradient). The tensor
  /// is -1 where all inputs of `source` but the first travel together: keys and values.
  OperatorId source{-1};
  TensorId tensor{-1};
  Phase phase = Phase::kForward;
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
