#include "executor/parameters/stage_parameters.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/operators/operators.hpp"

namespace meshwright {

StageParameters::StageParameters(RankContext& rank, std::span<const LayerId> layers,
                                 const RunLayouts& layouts, std::uint64_t seed,
                                 StageParameters* owner, TensorId owned)
    : rank_(rank),
      owner_(owner),
      owned_(owned),
      shards_(shards_of_part(rank.model, layers, rank.strategy, rank.rank, owned)) {
  for (std::size_t i = 0; i < shards_.shards.size(); ++i)
    index_of_[shards_.shards[i].tensor.value] = i;
  dense_ = make_run(false, layouts[0], seed);
  expert_ = make_run(true, layouts[1], seed);
}

ParameterRun StageParameters::make_run(bool expert, const RunLayout& layout, std::uint64_t seed) {
  std::vector<float> initial;
  initial.reserve(static_cast<std::size_t>(expert ? shards_.expert : shards_.dense));
  for (const ParameterShard& shard : shards_.shards) {
    if (shard.expert != expert) continue;
    MW_CHECK(shard.offset == std::ssize(initial));
    for_each_piece(shard.elements(), PieceLimits().elements, [&](std::int64_t, std::int64_t count) {
      initial.resize(initial.size() +
                     static_cast<std::size_t>(count));  // in steps: page faults are slow
      rank_.progress.beats.fetch_add(1, std::memory_order_relaxed);
    });
    fill_initial(rank_.model, shard, seed,
                 std::span(initial).last(static_cast<std::size_t>(shard.elements())),
                 rank_.progress.beats);
  }
  MW_CHECK(layout.pieces.empty() || layout.pieces.back().all.end == std::ssize(initial));
  ParameterRun run(rank_, layout, initial);
  if (layout.shards_gradients && layout.splits_backward && !expert)
    run.store_separately(blocks_of_backward_input());
  // Under the virtual clock kernels are timed one by one, as in the graph, which adds always.
  if (!layout.shards_gradients && !expert && rank_.queue != nullptr &&
      rank_.queue->timing() == QueueTiming::kNone)
    run.overwrite_first(large_matrices());
  return run;
}

/// Where leaving out a fill saves more time than the launches of those around it take: from a
/// million elements on, or a 64th of all.
std::vector<Block> StageParameters::large_matrices() const {
  const std::int64_t least_elements = std::min(std::int64_t{1} << 20, shards_.dense / 64);
  std::vector<Block> blocks;
  for (const ParameterShard& held : shards_.shards)
    if (!held.expert && held.held.size() == 2 && held.elements() >= least_elements)
      blocks.push_back({held.offset, held.offset + held.elements()});
  return blocks;
}

/// Elements whose gradients are computed by backward-input passes.
std::vector<Block> StageParameters::blocks_of_backward_input() const {
  std::vector<Block> blocks;
  for (const ParameterShard& held : shards_.shards)
    if (!held.expert && has_gradient_with_inputs(rank_.model, held.tensor))
      blocks.push_back({held.offset, held.offset + held.elements()});
  return blocks;
}

void StageParameters::clear_gradients() {
  dense_.clear_gradients();
  expert_.clear_gradients();
}

const ParameterShard& StageParameters::shard(TensorId id) const {
  return id == owned_ ? owner_->shard(id) : shards_.shards[index_of_.at(id.value)];
}

Matrix StageParameters::view(TensorId id, bool is_gradient) {
  if (id == owned_) return owner_->view(id, is_gradient);
  const ParameterShard& held = shard(id);
  ParameterRun& run = this->run(held.expert);
  const Block block{held.offset, held.offset + held.elements()};
  return matrix_of(held, is_gradient ? run.gradients(block) : run.weights(block));
}

/// Vectors are one row; the matrices of experts are stacked.
Matrix StageParameters::matrix_of(const ParameterShard& held, const Vector& values) const {
  const std::int64_t columns = held.extent(held.held.size() - 1);
  return dense_matrix(values.data, columns == 0 ? 0 : values.size / columns, columns, values.dtype);
}

StageParameters::Destination StageParameters::gradient_to_write(TensorId id) {
  if (id == owned_) return owner_->gradient_to_write(id);
  const ParameterShard& held = shard(id);
  const ParameterRun::Destination found =
      run(held.expert).gradients_to_write({held.offset, held.offset + held.elements()});
  return {matrix_of(held, found.values), found.adds};
}

}  // namespace meshwright
