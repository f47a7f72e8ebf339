/// Which elements of the model's parameters one rank holds, and where they lie in its buffers.
///
/// The parameters of a part of the model on one rank are two flat runs of elements, dense ones and
/// those of experts, in the order of layers, operators and their parameters: what ParameterRange
/// (core/kernel.hpp) counts in.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/ids.hpp"
#include "core/model_graph.hpp"
#include "core/plan.hpp"
#include "executor/communicator.hpp"

namespace meshwright {

/// Indices [begin, end) of one dimension of the whole parameter; those beyond its extent are
/// padding (of the vocabulary).
struct IndexRange {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
  friend bool operator==(const IndexRange&, const IndexRange&) = default;
};

struct ParameterShard {
  TensorId tensor;
  bool expert = false;
  std::int64_t offset = 0;  ///< of its first element in the dense or the expert run
  /// By dimension: the indices held, in the order of storage. Row-major, as the whole parameter.
  std::vector<std::vector<IndexRange>> held;
  /// By range of the last dimension: ranks of the tensor group that hold it, where there are more
  /// ranks than key and value heads; else empty.
  std::vector<int> column_copies;
  bool is_cut = false;  ///< by tensor or expert parallelism; else all those ranks hold all of it

  std::int64_t extent(std::size_t dimension) const;
  std::int64_t elements() const;
};

/// Place of a rank among those that cut parameters.
struct CutPlace {
  int tensor = 0, tensors = 1;
  int expert = 0, experts = 1;
  int expert_tensor = 0, expert_tensors = 1;
};
CutPlace cut_place_of(const Strategy& strategy, RankId rank);

struct PartShards {
  std::vector<ParameterShard> shards;
  std::int64_t dense = 0, expert = 0;  ///< elements in all
};
/// Parameters of `layers`; a head whose table lies with an embedding that is not among them holds
/// a copy of it, unless that is `elsewhere` on the same rank.
PartShards shards_of_part(const ModelGraph& model, std::span<const LayerId> layers,
                          const Strategy& strategy, RankId rank, TensorId elsewhere = TensorId(-1));

/// Calls visit(number) for every element of the shard's storage, in its order, with the number in
/// the whole parameter (row-major; -1: padding).
void for_each_element(const ParameterShard& shard, const ParameterTensor& whole,
                      const std::function<void(std::int64_t number)>& visit);

/// What training starts from: a function of the seed, the parameter's name and the element's number
/// in the whole parameter alone, so that every cut of a model starts from the same one. Matrices
/// are normal with deviation 0.02 (GPT-2), norms one, biases zero. A beat for every hundred
/// thousand elements or so: a word table takes seconds.
void fill_initial(const ModelGraph& model, const ParameterShard& shard, std::uint64_t seed,
                  std::span<float> values, Beats& beats);

}  // namespace meshwright
