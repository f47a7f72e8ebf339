/// Which elements of the model's parameters one rank holds, and their layout in its buffers.
///
/// The parameters of a model chunk on one rank form two flat buffers, dense and expert parameters,
/// in the order of layers, operators and their parameters. ParameterRange (core/base/kernel.hpp)
/// indexes these buffers.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/base/ids.hpp"
#include "core/model/model_graph.hpp"
#include "core/plan/plan.hpp"
#include "executor/transport/collectives.hpp"

namespace meshwright {

/// Indices [begin, end) in one dimension of the unsharded parameter; those beyond its extent are
/// padding (of the vocabulary).
using IndexRange = Block;

struct ParameterShard {
  TensorId tensor;
  bool expert = false;
  std::int64_t offset = 0;  ///< of its first element in the dense or the expert buffer
  /// By dimension: the indices held, in storage order. Row-major, like the unsharded parameter.
  std::vector<std::vector<IndexRange>> held;
  /// By range of the last dimension: number of tensor-parallel ranks that hold it, if there are
  /// more ranks than key-value heads; otherwise empty.
  std::vector<int> column_copies;
  bool is_cut = false;  ///< sharded by tensor or expert parallelism, otherwise replicated

  std::int64_t extent(std::size_t dimension) const;
  std::int64_t elements() const;
};

/// Position of a rank in the groups that shard parameters.
struct ShardPosition {
  int tensor = 0, tensors = 1;
  int expert = 0, experts = 1;
  int expert_tensor = 0, expert_tensors = 1;
};
ShardPosition shard_position_of(const Strategy& strategy, RankId rank);

struct PartShards {
  std::vector<ParameterShard> shards;
  std::int64_t dense = 0, expert = 0;  ///< total elements
};
/// The parameters of `layers`. An output layer tied to an embedding outside of `layers` holds a
/// copy of the table, unless this is `elsewhere` on the same rank.
PartShards shards_of_part(const ModelGraph& model, std::span<const LayerId> layers,
                          const Strategy& strategy, RankId rank, TensorId elsewhere = TensorId(-1));

/// Calls visit(number) for every element of the shard in storage order, with its row-major index in
/// the unsharded parameter (-1: padding).
void for_each_element(const ParameterShard& shard, const ParameterTensor& whole,
                      const std::function<void(std::int64_t number)>& visit);

/// Whether initial values are zero: biases, and what is added to scores.
bool is_bias(const Tensor& tensor);

/// Initial values: a function only of the seed, the parameter's name and the element's index in the
/// unsharded parameter, so that every parallel split starts from the same model. Matrices are
/// normal, norms constant (ParameterTensor says how), biases zero. Emits a heartbeat about
/// every hundred thousand elements, since an embedding table takes seconds.
void fill_initial(const ModelGraph& model, const ParameterShard& shard, std::uint64_t seed,
                  std::span<float> values, Beats& beats);

}  // namespace meshwright
