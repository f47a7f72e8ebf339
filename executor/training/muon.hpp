/// Muon (Jordan et al., 2024, https://kellerjordan.github.io/posts/muon): momentum whose matrices
/// are orthogonalized by five Newton-Schulz iterations. The update of a matrix [A, B] is scaled by
/// 0.2 sqrt(max(A, B)), the root mean square of AdamW's updates (Liu et al., arXiv 2502.16982), so
/// that both have one learning rate and weight decay.
///
/// Products with several outputs (queries, keys and values; gate and up) and the weights of several
/// experts are orthogonalized one by one. Tensor ranks gather the whole update of their matrices.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "executor/parameters/parameter_run.hpp"
#include "executor/parameters/parameter_shards.hpp"
#include "executor/ranks/training_options.hpp"

namespace meshwright {

/// Whether Muon updates the parameter (core/operators/muon.hpp).
bool is_orthogonalized(const ModelGraph& model, const ParameterShard& shard);

class Muon {
 public:
  /// Both must outlive it.
  Muon(RankContext& rank, const TrainingOptions& options) : rank_(rank), options_(options) {}

  struct Step {
    float learning_rate = 0, weight_decay = 0;
    float gradient_scale = 1;
  };
  /// Updates a parameter, of which the rank owns all elements of its shard. Collective over the
  /// tensor group if the parameter is sharded over it.
  void update(ParameterRun& run, const ParameterShard& shard, const Step& step);

 private:
  std::vector<float> next_momentum(ParameterRun& run, const ParameterShard& shard, float scale);
  std::vector<float> gathered(const ParameterShard& shard, std::vector<float> own);
  void orthogonalize(const ParameterShard& shard, std::span<float> whole);
  const std::vector<ParameterShard>& shards_of_group(const ParameterShard& shard,
                                                     std::span<const RankId> group);

  RankContext& rank_;
  const TrainingOptions& options_;
  std::map<std::int32_t, std::vector<ParameterShard>> shards_;  ///< by tensor and tensor rank
};

/// The matrix [rows, columns] with all singular values near 1. In place.
void newton_schulz(RankContext& rank, std::span<float> matrix, std::int64_t rows,
                   std::int64_t columns);

}  // namespace meshwright
