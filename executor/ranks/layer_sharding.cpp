#include "executor/ranks/layer_sharding.hpp"

#include <utility>

namespace meshwright {

std::vector<LayerSharding> layer_shardings_of(const ModelGraph& model, const Strategy& strategy,
                                              const RankCoordinate& at) {
  const LocalTokens tokens = local_tokens(shard_shape_of(strategy));
  const Block own = block_of(tokens.gathered, strategy.degrees.tensor, at.tensor);
  std::vector<LayerSharding> shardings;
  shardings.reserve(model.layers.size());
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const bool is_block = model.layers[i].kind == LayerKind::kBlock;
    const int block = is_block ? block_index(model, LayerId(i)) : 0;
    LayerSharding& made = shardings.emplace_back();
    made.strategy = is_block ? strategy_of_block(strategy, block) : strategy;
    made.at = at;
    made.shares_tokens = is_block && shares_tokens(strategy, block);
    if (made.shares_tokens) made.at.context = std::exchange(made.at.tensor, 0);
    made.shard = shard_shape_of(made.strategy);
    made.tokens = local_tokens(made.shard);
    made.own_rows = own;
  }
  return shardings;
}

}  // namespace meshwright
