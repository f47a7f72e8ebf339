/// How a rank takes part in one layer.
#pragma once

#include <vector>

#include "core/model/model_graph.hpp"
#include "core/operators/shard_shape.hpp"
#include "core/plan/plan.hpp"
#include "executor/transport/collectives.hpp"

namespace meshwright {

struct LayerSharding {
  Strategy strategy;  ///< of the layer: of blocks strategy_of_block()
  RankCoordinate at;  ///< in the sizes of this strategy
  ShardShape shard;
  LocalTokens tokens;
  /// Of the tokens of the tensor group, those that only this rank processes: under sequence
  /// parallelism, when it dispatches tokens to experts, and if tensor ranks share the tokens.
  Block own_rows;
  bool shares_tokens = false;  ///< the tensor ranks of the plan do: see LayerOptions::tensor
};
/// By layer.
std::vector<LayerSharding> layer_shardings_of(const ModelGraph& model, const Strategy& strategy,
                                              const RankCoordinate& at);

}  // namespace meshwright
