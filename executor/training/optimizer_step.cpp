#include "executor/training/optimizer_step.hpp"

#include <cmath>

#include "core/base/check.hpp"
#include "executor/training/owned_blocks.hpp"

namespace meshwright {

void OptimizerStep::update_all(StageParameters& parameters, const UpdateNumber& number) {
  for (const bool expert : {false, true})
    update(parameters, expert, {0, parameters.run(expert).elements()}, number);
}

/// By gradient, except score corrections. Neighbors with the same weight decay share a call.
void OptimizerStep::update(StageParameters& parameters, bool expert, const Block& range,
                           const UpdateNumber& number) {
  ParameterRun& run = parameters.run(expert);
  GradientUpdate next{{range.begin, range.begin}, options_.weight_decay, number};
  const auto update_until = [&](std::int64_t end) {
    next.range.end = end;
    update_by_gradient(run, next);
    next.range.begin = end;
  };
  for (const ParameterShard& shard : parameters.shards().shards) {
    const Block block = intersection(block_of(shard), range);
    if (shard.expert != expert || block.size() == 0) continue;
    if (!is_trained_by_gradient(rank_.model, shard)) {
      update_until(block.begin);
      balance_experts(run, shard, block);
      next.range.begin = block.end;
    } else if (rank_.strategy.optimizer == OptimizerKind::kMuon &&
               is_orthogonalized(rank_.model, shard)) {
      MW_CHECK(block.size() == shard.elements());
      update_until(block.begin);
      update_by_muon(run, shard, number.step);
      next.range.begin = block.end;
    } else if (const float decay = weight_decay_of(shard); decay != next.weight_decay) {
      update_until(block.begin);
      next.weight_decay = decay;
    }
  }
  update_until(range.end);
}

void OptimizerStep::update_by_muon(ParameterRun& run, const ParameterShard& shard,
                                   std::int64_t step) {
  const float rate = learning_rate_at(options_.learning_rate, options_.rate_schedule, step);
  muon_.update(run, shard,
               {.learning_rate = rate,
                .weight_decay = weight_decay_of(shard),
                .gradient_scale = rank_.on_host(norm_.clip_factor())});
}

float OptimizerStep::weight_decay_of(const ParameterShard& shard) const {
  const bool decays = options_.decays_norms_and_biases || !is_norm_or_bias(rank_.model, shard);
  return decays ? options_.weight_decay : 0;
}

/// Auxiliary-loss-free load balancing (DeepSeek-V3, arXiv 2412.19437, section 2.1.2): lowers the
/// score correction of experts with more rows than the mean and raises that of others. The
/// gradients hold the number of rows of each expert.
void OptimizerStep::balance_experts(ParameterRun& run, const ParameterShard& shard,
                                    const Block& correction) {
  const double mean = mean_rows_of(shard.tensor);
  for_each_own(run, correction, [&](std::size_t piece, const Block& block) {
    const std::int64_t first = run.layout().pieces[piece].own.begin;
    const std::vector<float> rows =
        rank_.on_host(part_of(run.gradients_for_update(piece), block, first));
    const Vector weights =
        meshwright::part_of(run.own_weights(piece), block.begin - first, block.size());
    const std::span<float> exact =
        run.has_master() ? part_of(run.master(piece), block, first) : floats_of(weights);
    std::vector<float> moved = rank_.on_host(exact);
    for (std::size_t e = 0; e < rows.size(); ++e) {
      const double missing = mean - static_cast<double>(rows[e]);
      moved[e] +=
          missing == 0 ? 0 : std::copysign(options_.balance_rate, static_cast<float>(missing));
    }
    rank_.copy(exact.data(), moved.data(), exact.size_bytes());
    if (run.has_master() && !run.layout().state_on_host)
      rank_.run(rank_.kernels.cast,
                {.x = {exact.data(), block.size(), Dtype::kFp32}, .y = weights});
  });
}

/// Rows per expert and step with perfect balance.
double OptimizerStep::mean_rows_of(TensorId correction) const {
  const Strategy& s = rank_.strategy;
  for (const Operator& op : rank_.model.operators)
    if (const auto* router = std::get_if<Router>(&op.shape);
        router != nullptr && op.parameters.back() == correction)
      return static_cast<double>(s.global_batch * s.sequence_length * router->experts_per_token) /
             router->experts;
  MW_CHECK(false);
}

/// SGD keeps its velocity in the first moments.
void OptimizerStep::update_by_gradient(ParameterRun& run, const GradientUpdate& update) {
  const float rate =
      learning_rate_at(options_.learning_rate, options_.rate_schedule, update.number.step);
  for_each_own(run, update.range, [&](std::size_t piece, const Block& block) {
    const std::int64_t first = run.layout().pieces[piece].own.begin;
    const Vector weights =
        meshwright::part_of(run.own_weights(piece), block.begin - first, block.size());
    const std::span<float> gradient = part_of(run.gradients_for_update(piece), block, first);
    const bool has_master = run.has_master();
    const std::span<float> master =
        has_master ? part_of(run.master(piece), block, first) : floats_of(weights);
    const Vector parameter = has_master && !run.layout().state_on_host ? weights : Vector{};
    const std::span<float> first_moment = part_of(run.first_moment(piece), block, first);
    if (rank_.strategy.optimizer == OptimizerKind::kSgd)
      return rank_.run(rank_.kernels.sgd,
                       {.master = master,
                        .velocity = first_moment,
                        .gradient = {gradient.data(), block.size(), Dtype::kFp32},
                        .parameter = parameter,
                        .learning_rate = rate,
                        .momentum = options_.momentum,
                        .weight_decay = update.weight_decay,
                        .gradient_scale = norm_.clip_factor()});
    rank_.run(rank_.kernels.adamw,
              {.master = master,
               .first_moment = first_moment,
               .second_moment = part_of(run.second_moment(piece), block, first),
               .gradient = {gradient.data(), block.size(), Dtype::kFp32},
               .parameter = parameter,
               .learning_rate = rate,
               .beta1 = options_.beta1,
               .beta2 = options_.beta2,
               .epsilon = options_.epsilon,
               .weight_decay = update.weight_decay,
               .step = update.number.earlier + 1,
               .gradient_scale = norm_.clip_factor()});
  });
}

void OptimizerStep::copy_with_host(ParameterRun& run, const Collective& collective) {
  for_each_own(run, block_of(collective.parameters), [&](std::size_t piece, const Block& block) {
    const std::int64_t first = run.layout().pieces[piece].own.begin;
    if (collective.kind == CollectiveKind::kCopyToHost) {
      const std::span<float> gradients = part_of(run.own_gradients(piece), block, first);
      rank_.copy(part_of(run.gradients_for_update(piece), block, first).data(), gradients.data(),
                 gradients.size_bytes());
      return;
    }
    rank_.run(
        rank_.kernels.cast,
        {.x = {part_of(run.master(piece), block, first).data(), block.size(), Dtype::kFp32},
         .y = meshwright::part_of(run.own_weights(piece), block.begin - first, block.size())});
  });
}

}  // namespace meshwright
