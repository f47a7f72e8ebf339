/// Parameters of a layer on one rank.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "core/model/model_graph.hpp"
#include "core/operators/shard_shape.hpp"

namespace meshwright {

/// One weight matrix of a layer on one rank.
struct WeightMatrix {
  std::int64_t rows = 0, columns = 0;
  int count = 1;  ///< experts on this rank with a matrix of this shape
  friend auto operator<=>(const WeightMatrix&, const WeightMatrix&) = default;
};
/// The matrices of Linear and ExpertLinear, in the order of the operators.
std::vector<WeightMatrix> weight_matrices(const ModelGraph& model, LayerId layer,
                                          const ShardShape& shard);
/// Elements of the largest table that the layer looks up; 0: none.
std::int64_t local_table_elements(const ModelGraph& model, LayerId layer, const ShardShape& shard);
/// Number of parameters of a layer on one rank.
struct LocalParameters {
  std::int64_t dense = 0;   ///< replicated over data ranks (and context ranks)
  std::int64_t expert = 0;  ///< replicated over the ranks holding the same experts
  friend bool operator==(const LocalParameters&, const LocalParameters&) = default;
};
constexpr LocalParameters& operator+=(LocalParameters& a, const LocalParameters& b) {
  a.dense += b.dense;
  a.expert += b.expert;
  return a;
}
LocalParameters local_parameters(const ModelGraph& model, LayerId layer, const ShardShape& shard);
/// The same per parameter tensor, in the order of the layer's operators.
struct LocalParameter {
  std::int64_t count = 0;
  bool expert = false;
  bool quantized = false;  ///< the matrix of a quantized GEMM
  friend bool operator==(const LocalParameter&, const LocalParameter&) = default;
};
std::vector<LocalParameter> local_parameter_list(const ModelGraph& model, LayerId layer,
                                                 const ShardShape& shard);
/// Elements on one rank of the layer's parameters that are sharded by vocabulary: the token table,
/// or the weights (and bias) of the logits; included in local_parameters(). A tied table counts in
/// the first layer only.
std::int64_t local_vocabulary_parameters(const ModelGraph& model, LayerId layer,
                                         const ShardShape& shard);
/// The parameters of a layer on one rank whose gradients must be summed over tensor ranks, because
/// each rank sees only part of the data. Replicated parameters applied to sharded tokens (sequence
/// parallelism: norms, biases of row-parallel layers, routers) or to sharded heads (query and key
/// norms) are summed over all tensor ranks; replicated key and value heads over their copies.
struct PartialGradients {
  std::int64_t over_tensor = 0, over_copies = 0;
  friend bool operator==(const PartialGradients&, const PartialGradients&) = default;
};
constexpr PartialGradients& operator+=(PartialGradients& a, const PartialGradients& b) {
  a.over_tensor += b.over_tensor;
  a.over_copies += b.over_copies;
  return a;
}
PartialGradients partial_gradients(const ModelGraph& model, LayerId layer, const ShardShape& shard);

/// Elements of the tied embedding table on one rank: the size of the copy that the head's device
/// holds if the embedding is on another device. Zero for untied models.
std::int64_t local_tied_parameters(const ModelGraph& model, const ShardShape& shard);

}  // namespace meshwright
