/// Options of tensor, context and expert parallelism other than their degrees, and the order in
/// which the axes are mapped to ranks.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/kernel.hpp"

namespace meshwright {

/// How context ranks communicate so that every query attends to every key. With n ranks, and KV, Q
/// and O the keys and values, queries and outputs of one rank, one rank sends per attention
/// operator:
///                 forward                  backward                       extra memory, forward
///   all-gather    n KV gathered            n KV gathered, n dKV scattered  n KV
///   ring          n - 1 times KV           n - 1 times KV, n times dKV     2 KV
///   all-to-all    Q + KV, then O           O, then Q + KV                  Q + KV
enum class ContextAlgorithm : std::uint8_t {
  kAllGather,  ///< keys and values of all ranks (Llama 3, arXiv 2407.21783, section 3.3.2)
  kRing,       ///< ring attention: keys and values circulate during it (arXiv 2310.01889)
  kAllToAll    ///< attention is sharded over heads, not the sequence (Ulysses, arXiv 2309.14509)
};
inline constexpr int kContextAlgorithmCount = 3;
std::string_view name_of(ContextAlgorithm algorithm);  ///< "all-gather", "ring", "all-to-all"
std::optional<ContextAlgorithm> context_algorithm_from_name(std::string_view name);

/// Expert routing. A rank dispatches n tokens, each to K of E experts.
struct ExpertRouting {
  /// Capacity factor: one rank sends exactly ceil(capacity n K / E) rows to each expert; missing
  /// rows are padded, excess rows dropped (GShard, arXiv 2006.16668, section 2.2). 0: dropless.
  double capacity = 0;
  /// Dropless: rows of the busiest expert rank / mean. Its expert computation and communication
  /// take longer by this factor, and the group waits for it. Capped at the expert-parallel size.
  double imbalance = 1;
  /// Dispatch rows and their gradients in fp8 with one fp32 scale per 128 elements; combine in the
  /// stored type (DeepSeek-V3, arXiv 2412.19437, section 3.3.3).
  bool fp8_dispatch = false;
  /// Maximum number of nodes that the experts of one token are on; a token is sent once per node
  /// and forwarded inside it (DeepSeek-V3, section 2.1.2: 4). 0: no limit, each row is sent
  /// separately.
  int node_limit = 0;
  /// Run the forward pass of one micro-batch together with the backward pass of another one, so
  /// that the dispatch and combine of either overlap with kernels of the other (Megatron-LM
  /// --overlap-moe-expert-parallel-comm; DualPipe, arXiv 2412.19437, section 3.2.1).
  bool overlap = false;
  friend bool operator==(const ExpertRouting&, const ExpertRouting&) = default;
};

/// The order of the axes, fastest-varying (neighboring ranks) first, as in Megatron-LM's --order.
/// For expert layers the ranks of a stage are ordered a second time: there `tensor` means
/// expert-tensor, `data` the replicas of the experts, and `context` is unused.
struct RankOrder {
  std::array<Axis, kAxisCount> axes = kAxes;
  friend bool operator==(const RankOrder&, const RankOrder&) = default;
};
std::string to_text(const RankOrder& order);  ///< "tp-cp-ep-dp-pp"
/// Empty if an axis is missing, duplicate or unknown.
std::optional<RankOrder> rank_order_from_text(std::string_view text);

struct ModelParallelism {
  /// Overlap the all-gathers and reduce-scatters of sequence parallelism with the GEMMs that
  /// consume or produce their data (Megatron-LM --tp-comm-overlap; Transformer Engine). Before and
  /// after a forward GEMM, and before an input-gradient GEMM, both are split into one chunk per
  /// tensor rank; re-gathering an input and scattering its gradient overlap with an independent
  /// GEMM. Blocks only.
  bool tensor_overlap = false;
  ContextAlgorithm context = ContextAlgorithm::kAllGather;
  ExpertRouting routing;
  RankOrder order;
  friend bool operator==(const ModelParallelism&, const ModelParallelism&) = default;
};

}  // namespace meshwright
