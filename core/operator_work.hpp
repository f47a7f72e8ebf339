/// What one operator asks of one rank: arithmetic, memory traffic, kept activations. Facts of the
/// operator and of how it is cut; no cost and no device.
#pragma once

#include <cstdint>
#include <vector>

#include "core/kernel.hpp"
#include "core/model_graph.hpp"
#include "core/plan.hpp"
#include "core/units.hpp"

namespace meshwright {

/// The part of a strategy that shapes local work.
struct ShardShape {
  std::int64_t sequences = 1;        ///< B: micro-batch
  std::int64_t sequence_length = 1;  ///< T: whole sequence, before context parallelism cuts it
  ParallelDegrees degrees;
  bool sequence_parallel = false;
  Dtype dtype = Dtype::kBf16;
  AttentionAlgorithm attention = AttentionAlgorithm::kFlash;
  friend bool operator==(const ShardShape&, const ShardShape&) = default;
};
ShardShape shard_shape_of(const Strategy& strategy);

/// Forward FLOPs of the uncut operator on B sequences of length T; a multiply-add is two. Attention
/// counts every score (full, not causal-halved), windows are honoured.
Flops forward_flops(const Operator& op, std::int64_t sequences, std::int64_t sequence_length);

/// Kernels that one rank launches for the operator in one phase, in order; cut as `shard` says.
/// Operators without weights have their whole backward in kBackwardInput.
std::vector<Kernel> kernels_of(const ModelGraph& model, OperatorId op, const ShardShape& shard,
                               Phase phase);

/// Local bytes of an activation tensor.
Bytes activation_bytes(const ActivationTensor& tensor, const ShardShape& shard);

/// Bytes that one rank keeps from a layer's forward to its backward: every kept tensor once.
/// Korthikanti et al. (arXiv 2205.05198), eq. 1-4: a GPT layer with standard attention keeps
/// T B H (34 + 5 A T / H) bytes uncut, T B H (10 + 24/t + 5 A T / (H t)) under tensor parallelism
/// t, T B H / t (34 + 5 A T / H) with sequence parallelism; tests repeat all of them.
Bytes kept_activation_bytes(const ModelGraph& model, LayerId layer, const ShardShape& shard,
                            const Recompute& recompute);

/// Parameters of a layer that one rank holds.
struct LocalParameters {
  std::int64_t dense = 0;   ///< replicated over data ranks (and context ranks)
  std::int64_t expert = 0;  ///< replicated over the ranks that hold the same experts
  friend bool operator==(const LocalParameters&, const LocalParameters&) = default;
};
LocalParameters local_parameters(const ModelGraph& model, LayerId layer, const ShardShape& shard);

}  // namespace meshwright
