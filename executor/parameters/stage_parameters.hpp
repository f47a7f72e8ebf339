/// Parameters of one pipeline stage on one rank, with their gradients and optimizer state.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "executor/parameters/parameter_run.hpp"
#include "executor/parameters/parameter_shards.hpp"
#include "executor/ranks/rank_context.hpp"

namespace meshwright {

class StageParameters {
 public:
  /// The parameter `owned` belongs to another stage on this rank: an output layer that is tied to
  /// its embedding table.
  StageParameters(RankContext& rank, std::span<const LayerId> layers, const RunLayouts& layouts,
                  std::uint64_t seed, StageParameters* owner = nullptr,
                  TensorId owned = TensorId(-1));

  /// The data pointer is null if the weight is sharded over the data-parallel ranks and not
  /// gathered.
  Matrix weight(TensorId id) { return view(id, false); }
  Matrix gradient(TensorId id) { return view(id, true); }  ///< fp32, to be added to
  /// A gradient, and whether something must be added to it; else all of it must be written.
  struct Destination {
    Matrix gradient;
    bool adds = true;
  };
  Destination gradient_to_write(TensorId id);
  const ParameterShard& shard(TensorId id) const;
  const PartShards& shards() const { return shards_; }
  ParameterRun& run(bool expert) { return expert ? expert_ : dense_; }
  void clear_gradients();

 private:
  ParameterRun make_run(bool expert, const RunLayout& layout, std::uint64_t seed);
  std::vector<Block> blocks_of_backward_input() const;
  std::vector<Block> large_matrices() const;
  Matrix matrix_of(const ParameterShard& held, const Vector& values) const;
  Matrix view(TensorId id, bool is_gradient);
  RankContext& rank_;
  StageParameters* owner_;
  TensorId owned_;
  PartShards shards_;
  std::map<std::int32_t, std::size_t> index_of_;  ///< by tensor
  ParameterRun dense_, expert_;
};

}  // namespace meshwright
