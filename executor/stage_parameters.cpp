#include "executor/stage_parameters.hpp"

#include <algorithm>

namespace meshwright {

StageParameters::StageParameters(RankContext& rank, std::span<const LayerId> layers,
                                 std::array<std::vector<Block>, 2> updated, std::uint64_t seed,
                                 StageParameters* owner, TensorId owned)
    : rank_(rank),
      owner_(owner),
      owned_(owned),
      shards_(shards_of_part(rank.model, layers, rank.strategy, rank.rank, owned)) {
  for (std::size_t i = 0; i < shards_.shards.size(); ++i)
    index_of_[shards_.shards[i].tensor.value] = i;
  dense_.updated = std::move(updated[0]);
  expert_.updated = std::move(updated[1]);
  make_run(false, seed);
  make_run(true, seed);
}

void StageParameters::make_run(bool expert, std::uint64_t seed) {
  const std::int64_t count = expert ? shards_.expert : shards_.dense;
  ParameterRun& run = this->run(expert);
  run.weights = rank_.matrix(MemoryClass::kWeights, 1, count, rank_.dtype);
  run.gradients = rank_.matrix(MemoryClass::kGradients, 1, count, Dtype::kFp32);
  if (run.updated.empty()) run.updated = {{0, count}};
  std::int64_t updated = 0;
  for (const Block& block : run.updated) updated += block.size();
  const bool has_master = rank_.dtype != Dtype::kFp32;
  const auto state = [&] {
    OwnedMatrix made = rank_.matrix(MemoryClass::kOptimizer, 1, updated, Dtype::kFp32);
    std::ranges::fill(made.floats(), 0.0F);
    return made;
  };
  run.first_moment = state();
  run.second_moment = state();
  if (has_master) run.master = state();

  std::vector<float> initial(static_cast<std::size_t>(count));
  for (const ParameterShard& shard : shards_.shards) {
    if (shard.expert != expert) continue;
    fill_initial(rank_.model, shard, seed,
                 std::span(initial).subspan(static_cast<std::size_t>(shard.offset),
                                            static_cast<std::size_t>(shard.elements())));
    rank_.progress.beats.fetch_add(1, std::memory_order_relaxed);
  }
  rank_.run(rank_.kernels.cast,
            {.x = {initial.data(), count, Dtype::kFp32}, .y = flat(run.weights.view())});
  if (has_master) {
    auto master = run.master.floats().begin();
    for (const Block& block : run.updated)
      master = std::copy_n(initial.begin() + block.begin, block.size(), master);
  }
  clear_gradients();
}

void StageParameters::clear_gradients() {
  for (ParameterRun* run : {&dense_, &expert_})
    if (!run->gradients.empty()) std::ranges::fill(run->gradients.floats(), 0.0F);
}

const ParameterShard& StageParameters::shard(TensorId id) const {
  return id == owned_ ? owner_->shard(id) : shards_.shards[index_of_.at(id.value)];
}

Matrix StageParameters::view(TensorId id, bool is_gradient) {
  if (id == owned_) return owner_->view(id, is_gradient);
  const ParameterShard& held = shard(id);
  ParameterRun& run = this->run(held.expert);
  const Vector all = flat((is_gradient ? run.gradients : run.weights).view());
  const Vector mine = part_of(all, held.offset, held.elements());
  // Vectors are one row; the matrices of experts lie under each other.
  const std::int64_t columns = held.extent(held.held.size() - 1);
  return dense_matrix(mine.data, columns == 0 ? 0 : mine.size / columns, columns, mine.dtype);
}

}  // namespace meshwright
