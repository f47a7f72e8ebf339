#include "executor/training/server_training.hpp"

#include "core/base/check.hpp"

namespace meshwright {
namespace {

ServerPlace place_of(const RankContext& rank, int ranks) {
  return {.ranks = ranks,
          .workers = rank.strategy.degrees.data,
          .servers = rank.strategy.data_parallelism.servers};
}

std::unique_ptr<StageParameters> shard_of(RankContext& rank, const ServerPlace& place,
                                          std::span<const LayerId> layers, std::uint64_t seed) {
  if (!place.is_server(rank.rank)) return nullptr;
  const PartShards shards = shards_of_part(rank.model, layers, rank.strategy, rank.rank);
  return std::make_unique<StageParameters>(rank, layers, server_layouts(place, rank.rank, shards),
                                           seed);
}

}  // namespace

ServerTraining::ServerTraining(RankContext& rank, int ranks, std::span<const LayerId> layers,
                               StageParameters* worker, GradientNorm& norm,
                               OptimizerStep& optimizer, std::uint64_t seed)
    : rank_(rank),
      worker_(worker),
      norm_(norm),
      optimizer_(optimizer),
      shard_(shard_of(rank, place_of(rank, ranks), layers, seed)),
      role_(rank, place_of(rank, ranks), worker, shard_.get()) {}

bool ServerTraining::is_asynchronous() const {
  return rank_.strategy.data_parallelism.kind == DataParallelKind::kAsyncParameterServer;
}

/// An asynchronous server performs one update per worker and step.
void ServerTraining::resume_after(std::int64_t steps) {
  updates_ = steps * (is_asynchronous() ? rank_.strategy.degrees.data : 1);
}

Ticks ServerTraining::communicate(const Collective& collective, std::span<const RankId> members,
                                  RankGroup& group, std::int64_t step, Ticks ready) {
  switch (collective.kind) {
    case CollectiveKind::kPush:
      if (worker_ != nullptr) clip_own_gradients(step);
      return role_.push(collective, members, group, group.tag(), ready);
    case CollectiveKind::kPull:
      return role_.pull(collective, members, group, group.tag(), ready);
    case CollectiveKind::kAllReduce:
      return norm_.reduce_over_servers(*shard_, group, step, ready);
    default:
      MW_CHECK(false);
  }
}

/// An asynchronous worker clips its push by its own norm, since no server sees the full gradient.
void ServerTraining::clip_own_gradients(std::int64_t step) {
  if (!is_asynchronous() || norm_.is_known()) return;
  norm_.clip_by_own(*worker_, step);
  role_.scale_gradients(rank_.on_host(norm_.clip_factor()));
}

void ServerTraining::update(std::int64_t step) {
  const bool is_synchronous = !is_asynchronous();
  const bool is_of_own_worker = !is_synchronous && !role_.has_pushes();
  if (!pushes_are_summed_) {
    if (is_of_own_worker) clip_own_gradients(step);
    role_.sum_pushes();
    pushes_are_summed_ = true;
    if (is_synchronous && rank_.strategy.data_parallelism.servers > 1) return;
    RankGroup alone(rank_.communicator, {rank_.rank}, {});
    if (is_synchronous) norm_.reduce_over_servers(*shard_, alone, step, Ticks());
  }
  const float own_clip_factor = rank_.on_host(norm_.clip_factor());
  if (!is_synchronous) norm_.set_clip_factor(1);  // workers have clipped their pushes
  optimizer_.update_all(*shard_, {.step = step, .earlier = updates_++});
  if (!is_synchronous) norm_.set_clip_factor(own_clip_factor);
  pushes_are_summed_ = false;
  if (is_of_own_worker) role_.copy_to_own_worker();
}

}  // namespace meshwright
