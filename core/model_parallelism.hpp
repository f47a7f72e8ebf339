/// How the axes inside a replica do their work: tensor, context and expert parallelism beyond their
/// degrees, and the order in which all axes fill the ranks.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/kernel.hpp"

namespace meshwright {

/// What context ranks exchange so that every query meets every key. n ranks; KV is what one rank
/// has of keys and values, Q of queries, O of outputs. Sent by one rank for one attention operator:
///                 forward                  backward                       held beside, forward
///   all-gather    n KV gathered            n KV gathered, n dKV scattered  n KV
///   ring          n - 1 times KV           n - 1 times KV, n times dKV     2 KV
///   all-to-all    Q + KV, then O           O, then Q + KV                  Q + KV
enum class ContextAlgorithm : std::uint8_t {
  kAllGather,  ///< keys and values of all ranks (Llama 3, arXiv 2407.21783, section 3.3.2)
  kRing,       ///< they travel round a ring beside the attention (arXiv 2310.01889)
  kAllToAll    ///< heads are cut instead of the sequence meanwhile (Ulysses, arXiv 2309.14509)
};
inline constexpr int kContextAlgorithmCount = 3;
std::string_view name_of(ContextAlgorithm algorithm);  ///< "all-gather", "ring", "all-to-all"
std::optional<ContextAlgorithm> context_algorithm_from_name(std::string_view name);

/// How tokens find their experts. A rank has n tokens to send, each to K of E experts.
struct ExpertRouting {
  /// Rows that one rank sends to an expert: ceil(capacity n K / E) exactly; buffers are filled up
  /// to it, rows beyond it are dropped (GShard, arXiv 2006.16668, section 2.2). 0: dropless.
  double capacity = 0;
  /// Dropless: rows of the busiest expert rank over their mean. Its experts, and the exchange with
  /// it, take so much longer; the group waits for it. At most the expert degree counts.
  double imbalance = 1;
  /// Rows and their gradients go out in fp8 with an fp32 scale for each 128 elements, and come back
  /// in the stored type (DeepSeek-V3, arXiv 2412.19437, section 3.3.3).
  bool fp8_dispatch = false;
  /// A token's experts lie on so many nodes at most; it crosses the network once a node and is
  /// passed on inside (DeepSeek-V3, section 2.1.2: 4). 0: any nodes, every row by itself.
  int node_limit = 0;
  friend bool operator==(const ExpertRouting&, const ExpertRouting&) = default;
};

/// Axes from the one whose ranks are neighbours to the one whose ranks lie furthest apart. The
/// expert axis orders the ranks of a stage a second time: there tensor stands for expert-tensor,
/// data for the replicas of the experts, and context for nothing (Megatron-LM --order).
struct RankOrder {
  std::array<Axis, kAxisCount> axes{Axis::kTensor, Axis::kContext, Axis::kExpert, Axis::kData,
                                    Axis::kPipeline};
  friend bool operator==(const RankOrder&, const RankOrder&) = default;
};
std::string to_text(const RankOrder& order);  ///< "tp-cp-ep-dp-pp"
/// Nothing if an axis is missing, stands twice or is unknown.
std::optional<RankOrder> rank_order_from_text(std::string_view text);

struct ModelParallelism {
  /// All-gathers and reduce-scatters of sequence parallelism run beside the matrix products that
  /// need or make their data (Megatron-LM --tp-comm-overlap; Transformer Engine): in front of and
  /// behind a forward product, and in front of an input gradient, both go in as many pieces as
  /// there are tensor ranks; gathering an input again and scattering its gradient hide behind the
  /// product beside them. In blocks only.
  bool tensor_overlap = false;
  ContextAlgorithm context = ContextAlgorithm::kAllGather;
  ExpertRouting routing;
  RankOrder order;
  friend bool operator==(const ModelParallelism&, const ModelParallelism&) = default;
};

}  // namespace meshwright
