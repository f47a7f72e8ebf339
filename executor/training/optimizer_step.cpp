#include "executor/training/optimizer_step.hpp"

#include <cmath>

#include "core/base/check.hpp"
#include "executor/training/owned_blocks.hpp"

namespace meshwright {

void OptimizerStep::update_all(StageParameters& parameters, std::int64_t updates) {
  for (const bool expert : {false, true})
    update(parameters, expert, {0, parameters.run(expert).elements()}, updates);
}

/// By gradient, except score corrections.
void OptimizerStep::update(StageParameters& parameters, bool expert, const Block& range,
                           std::int64_t updates) {
  ParameterRun& run = parameters.run(expert);
  std::int64_t next = range.begin;
  for (const ParameterShard& shard : parameters.shards().shards) {
    if (shard.expert != expert || is_trained_by_gradient(rank_.model, shard)) continue;
    const Block correction = intersection(block_of(shard), range);
    if (correction.size() == 0) continue;
    update_by_gradient(run, {next, correction.begin}, updates);
    balance_experts(run, shard, correction);
    next = correction.end;
  }
  update_by_gradient(run, {next, range.end}, updates);
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

void OptimizerStep::update_by_gradient(ParameterRun& run, const Block& range,
                                       std::int64_t updates) {
  for_each_own(run, range, [&](std::size_t piece, const Block& block) {
    const std::int64_t first = run.layout().pieces[piece].own.begin;
    const Vector weights =
        meshwright::part_of(run.own_weights(piece), block.begin - first, block.size());
    const std::span<float> gradient = part_of(run.gradients_for_update(piece), block, first);
    const bool has_master = run.has_master();
    rank_.run(rank_.kernels.adamw,
              {.master = has_master ? part_of(run.master(piece), block, first) : floats_of(weights),
               .first_moment = part_of(run.first_moment(piece), block, first),
               .second_moment = part_of(run.second_moment(piece), block, first),
               .gradient = {gradient.data(), block.size(), Dtype::kFp32},
               .parameter = has_master && !run.layout().state_on_host ? weights : Vector{},
               .learning_rate = options_.learning_rate,
               .beta1 = options_.beta1,
               .beta2 = options_.beta2,
               .epsilon = options_.epsilon,
               .weight_decay = options_.weight_decay,
               .step = updates + 1,
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
