/// Sums of gradients that several ranks compute in part, beyond the data-parallel reduction.
#pragma once

#include "executor/training/rank_stages.hpp"
#include "executor/transport/collectives.hpp"

namespace meshwright {

/// All-reduces the gradient of a tied embedding table, which both stages shard in the same way.
Ticks sum_table_gradients(StageParameters& parameters, TensorId table, RankGroup& group,
                          Ticks ready);

/// All-reduces the partial gradients of tensor ranks, see PartialGradients
/// (core/operators/local_parameters.hpp). The first call in a step sums over all tensor ranks those
/// of replicated parameters used on a part of the tokens or heads; the second, over the ranks with
/// copies of key-value heads, those of the copied columns.
Ticks sum_partial_gradients(RankContext& rank, RankStage& stage, RankGroup& group, Ticks ready);

}  // namespace meshwright
