// Softmax cross-entropy over the full vocabulary or one sharded over the tensor ranks.
#include <algorithm>

#include "executor/operators/operator_pass.hpp"

namespace meshwright {
namespace {

/// This rank's logits, and which of its columns are token IDs rather than padding.
LogitShard shard_of(OperatorPass& pass, const CrossEntropy& loss) {
  const Matrix logits = pass.value(pass.input());
  const bool cut = pass.rank.activation(pass.input()).cut == ActivationCut::kFeatures;
  const std::int64_t first = cut ? logits.columns * pass.sharding.at.tensor : 0;
  return {.logits = logits,
          .tokens = std::clamp<std::int64_t>(loss.vocabulary - first, 0, logits.columns),
          .first_token = first};
}

/// The target token IDs of the rows with local logits: the rank's own rows if an unsharded output
/// layer runs on sharded tokens.
std::span<const std::int32_t> targets_of(OperatorPass& pass) {
  const std::span<const std::int32_t> all = pass.rows.targets;
  const std::int64_t rows = pass.value(pass.input()).rows;
  pass.state.loss_of_own_rows = rows < static_cast<std::int64_t>(all.size());
  return pass.of_rows(all, rows);
}

bool is_shared(const OperatorPass& pass) {
  return pass.is_cut() && pass.rank.activation(pass.input()).cut == ActivationCut::kFeatures;
}

}  // namespace

void forward(OperatorPass& pass, const CrossEntropy& loss) {
  MicrobatchState& state = pass.state;
  if (loss.softcap > 0) {  // in place: nothing else reads the logits
    const Vector logits = flat(pass.value(pass.input()));
    pass.rank.run(pass.rank.kernels.softcap_forward,
                  {.x = logits, .y = logits, .cap = static_cast<float>(loss.softcap)});
  }
  const LogitShard shard = shard_of(pass, loss);
  for (OwnedMatrix* values :
       {&state.loss_maximum, &state.loss_sum, &state.target_logit, &state.loss})
    *values = pass.rank.numbers(shard.logits.rows);
  if (is_shared(pass)) {  // completed by reduce_loss()
    pass.rank.run(pass.rank.kernels.cross_entropy_maximum,
                  {.shard = shard, .maximum = state.loss_maximum.floats()});
    return;
  }
  pass.rank.run(pass.rank.kernels.cross_entropy_forward, {.shard = shard,
                                                          .targets = targets_of(pass),
                                                          .maximum = state.loss_maximum.floats(),
                                                          .sum = state.loss_sum.floats(),
                                                          .loss = state.loss.floats()});
}

/// Reduces first the maximum logit, then sum of exponentials and target logit in one message.
Ticks reduce_loss(OperatorPass& pass, RankGroup& group, Ticks ready) {
  MicrobatchState& state = pass.state;
  const LogitShard shard = shard_of(pass, std::get<CrossEntropy>(pass.op().shape));
  if (!state.maximum_is_reduced) {
    state.maximum_is_reduced = true;
    return group.all_reduce_max(state.loss_maximum.floats(), ready);
  }
  state.maximum_is_reduced = false;
  pass.rank.run(pass.rank.kernels.cross_entropy_sum, {.shard = shard,
                                                      .targets = targets_of(pass),
                                                      .maximum = state.loss_maximum.floats(),
                                                      .sum = state.loss_sum.floats(),
                                                      .target_logit = state.target_logit.floats()});
  const std::int64_t count = state.loss_sum.columns();
  OwnedMatrix both = pass.rank.numbers(2 * count);
  const Matrix sums = columns_of(both.view(), 0, count);
  const Matrix logits = columns_of(both.view(), count, count);
  copy(pass, state.loss_sum.view(), sums);
  copy(pass, state.target_logit.view(), logits);
  ready = group.all_reduce(both.floats(), ready);
  copy(pass, sums, state.loss_sum.view());
  copy(pass, logits, state.target_logit.view());
  pass.rank.run(pass.rank.kernels.cross_entropy_loss, {.targets = targets_of(pass),
                                                       .maximum = state.loss_maximum.floats(),
                                                       .sum = state.loss_sum.floats(),
                                                       .target_logit = state.target_logit.floats(),
                                                       .loss = state.loss.floats()});
  return ready;
}

void backward_input(OperatorPass& pass, const CrossEntropy& loss) {
  const LogitShard shard = shard_of(pass, loss);
  const Matrix gradient = pass.make(pass.input(), Form::kGradient, shard.logits.rows,
                                    shard.logits.columns, pass.rank.dtype);
  pass.rank.run(pass.rank.kernels.cross_entropy_gradient,
                {.shard = shard,
                 .targets = targets_of(pass),
                 .maximum = pass.state.loss_maximum.floats(),
                 .sum = pass.state.loss_sum.floats(),
                 .scale = pass.loss_scale,
                 .dlogits = gradient});
  if (loss.softcap > 0)
    pass.rank.run(pass.rank.kernels.softcap_backward, {.y = flat(shard.logits),
                                                       .dy = flat(gradient),
                                                       .dx = flat(gradient),
                                                       .cap = static_cast<float>(loss.softcap)});
}

}  // namespace meshwright
