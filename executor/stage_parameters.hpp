/// Parameters of one stage on one rank, with their gradients and optimizer state.
#pragma once

#include <array>
#include <map>
#include <span>
#include <vector>

#include "executor/collectives.hpp"
#include "executor/parameter_shards.hpp"
#include "executor/rank_context.hpp"

namespace meshwright {

/// One flat run of elements: the dense parameters of a stage, or those of its experts.
struct ParameterRun {
  OwnedMatrix weights;    ///< [1, n], in the compute dtype
  OwnedMatrix gradients;  ///< [1, n], fp32
  /// Elements whose state this rank keeps and updates, rising; their state lies side by side.
  std::vector<Block> updated;
  OwnedMatrix master;  ///< fp32 copy of 16-bit weights; empty where weights are fp32
  OwnedMatrix first_moment, second_moment;
  std::int64_t elements() const { return weights.columns(); }
};

class StageParameters {
 public:
  /// `updated` says which elements of the dense and the expert run this rank updates. The parameter
  /// `owned` is another stage's on this rank: a head that reads the table of its embedding.
  StageParameters(RankContext& rank, std::span<const LayerId> layers,
                  std::array<std::vector<Block>, 2> updated, std::uint64_t seed,
                  StageParameters* owner = nullptr, TensorId owned = TensorId(-1));

  Matrix weight(TensorId id) { return view(id, false); }
  Matrix gradient(TensorId id) { return view(id, true); }  ///< fp32
  const ParameterShard& shard(TensorId id) const;
  const PartShards& shards() const { return shards_; }
  ParameterRun& run(bool expert) { return expert ? expert_ : dense_; }
  void clear_gradients();

 private:
  void make_run(bool expert, std::uint64_t seed);
  Matrix view(TensorId id, bool is_gradient);
  RankContext& rank_;
  StageParameters* owner_;
  TensorId owned_;
  PartShards shards_;
  std::map<std::int32_t, std::size_t> index_of_;  ///< by tensor
  ParameterRun dense_, expert_;
};

}  // namespace meshwright
