#include "executor/training/gradient_norm.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <stdexcept>

#include "core/plan/weight_versions.hpp"
#include "executor/training/owned_blocks.hpp"

namespace meshwright {

/// With whole models and without a flush, no other rank contributes the same elements.
GradientNorm::GradientNorm(RankContext& rank, RankStages& stages, FiniteChecks& checks, float limit)
    : rank_(rank),
      stages_(stages),
      checks_(checks),
      limit_(limit),
      covers_own_elements_only_(
          (rank.strategy.data_parallelism.kind != DataParallelKind::kCollective &&
           rank.strategy.data_parallelism.kind != DataParallelKind::kRing) ||
          updates_without_flush(rank.strategy)),
      clip_factor_(rank.numbers(1)) {
  set_clip_factor(1);
}

void GradientNorm::set_clip_factor(float value) {
  rank_.run(rank_.kernels.fill, {.y = flat(clip_factor_.view()), .value = value});
}

void GradientNorm::set_clip_factor_from(float squared_norm) {
  rank_.run(rank_.kernels.clip_scale,
            {.sum = &squared_norm, .limit = limit_, .scale = clip_factor()});
  if (has_norm_of_all()) last_ = std::sqrt(static_cast<double>(squared_norm));
}

/// Asynchronous workers and flushless stages clip by the norm of their own gradients.
bool GradientNorm::has_norm_of_all() const {
  return rank_.strategy.data_parallelism.kind != DataParallelKind::kAsyncParameterServer &&
         !updates_without_flush(rank_.strategy);
}

Ticks GradientNorm::reduce(RankGroup& group, std::int64_t step, Ticks ready) {
  if (!own_squared_norm_) prepare();
  std::array<float, 1> sum{static_cast<float>(*own_squared_norm_)};
  own_squared_norm_.reset();
  ready = group.all_reduce(std::span(sum), ready);
  if (!std::isfinite(sum.front())) report_not_finite(group, step);
  set_clip_factor_from(sum.front());
  is_known_ = true;
  return ready;
}

Ticks GradientNorm::reduce_over_servers(StageParameters& shard, RankGroup& group, std::int64_t step,
                                        Ticks ready) {
  std::array<float, 1> sum{static_cast<float>(squared_norm(shard, 1))};
  ready = group.all_reduce(std::span(sum), ready);
  checks_.check_gradients(sum.front(), step);
  set_clip_factor_from(sum.front());
  return ready;
}

void GradientNorm::clip_by_own(StageParameters& parameters, std::int64_t step) {
  const auto sum = static_cast<float>(squared_norm(parameters, 1));
  checks_.check_gradients(sum, step);
  set_clip_factor_from(sum);
  is_known_ = true;
}

/// Collective: the rank with the first stage at fault reports it.
void GradientNorm::report_not_finite(RankGroup& group, std::int64_t step) {
  checks_.settle();
  std::vector<RankStage>& stages = stages_.all();
  std::size_t first = 0;
  while (first < stages.size() &&
         !(stages[first].parameters &&
           !std::isfinite(squared_norm(*stages[first].parameters, stages[first].chunk_replicas))))
    ++first;
  const bool is_here = first < stages.size();
  std::array<float, 1> found{is_here ? 1.0F : 0.0F};
  group.all_reduce_max(std::span(found), Ticks());
  if (is_here)
    throw std::runtime_error(
        fmt::format("gradients of stage {} are not finite in step {}", first, step));
  if (found.front() > 0) throw PeerFailure("gradients on another rank are not finite");
  throw std::runtime_error(fmt::format("global gradient norm overflows in step {}", step));
}

/// Number of ranks that contribute the same elements of a parameter to the norm.
std::int64_t GradientNorm::ranks_with(const ParameterShard& shard, int chunk_replicas) const {
  const Strategy& s = rank_.strategy;
  const ParallelDegrees& d = s.degrees;
  if (covers_own_elements_only_) return 1;
  const std::int64_t experts = std::int64_t{d.expert} * d.expert_tensor;
  const std::int64_t dense = replica_count(d);
  const std::int64_t replicas = shard.expert ? dense * d.tensor / experts : dense;
  std::int64_t ranks = chunk_replicas * replicas;
  const std::int64_t shards = s.data_parallelism.shard_ranks;
  if (s.zero > 0) ranks = shards == 0 || shards >= replicas ? 1 : replicas / shards;
  if (!shard.is_cut) ranks *= d.tensor;
  return shard.tensor == stages_.shared_table() ? ranks * 2 : ranks;
}

double GradientNorm::squared_norm_of_all() {
  double sum = 0;
  for (RankStage& stage : stages_.all())
    if (stage.parameters) sum += squared_norm(*stage.parameters, stage.chunk_replicas);
  return sum;
}

/// Counts every parameter once, however many ranks hold it, and only those trained by gradients.
double GradientNorm::squared_norm(StageParameters& parameters, int chunk_replicas) {
  struct Part {
    const ParameterShard* shard;  ///< the first of its parameters
    Block range;
    bool is_whole = false;  ///< without copies
    bool is_copy = false;
  };
  std::vector<Part> parts;
  for (const ParameterShard& shard : parameters.shards().shards) {
    if (!is_trained_by_gradient(rank_.model, shard)) continue;
    const Block range = block_of(shard);
    const std::vector<Block> copies = copied_columns(shard);
    // Neighbors that count alike are one part: a model has hundreds of parameters.
    if (copies.empty() && !parts.empty() && parts.back().is_whole &&
        parts.back().range.end == range.begin && parts.back().shard->expert == shard.expert &&
        ranks_with(*parts.back().shard, chunk_replicas) == ranks_with(shard, chunk_replicas)) {
      parts.back().range.end = range.end;
      continue;
    }
    parts.push_back({.shard = &shard, .range = range, .is_whole = copies.empty()});
    for (const Block& block : copies)
      parts.push_back({.shard = &shard, .range = block, .is_copy = true});
  }
  OwnedMatrix norms = rank_.numbers(std::ssize(parts));
  rank_.run(rank_.kernels.fill, {.y = flat(norms.view()), .value = 0});
  for (std::size_t i = 0; i < parts.size(); ++i)
    add_squared_norm(parameters.run(parts[i].shard->expert), parts[i].range,
                     norms.floats().data() + i);
  const std::vector<float> on_host = rank_.on_host(norms.floats());
  double sum = 0, once = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const ParameterShard& shard = *parts[i].shard;
    const auto norm = static_cast<double>(on_host[i]);
    if (parts[i].is_copy)  // count one copy only
      once -= norm * (1 - 1.0 / shard.column_copies.back());
    else
      once = norm;
    if (i + 1 == parts.size() || !parts[i + 1].is_copy)
      sum += once / static_cast<double>(ranks_with(shard, chunk_replicas));
  }
  return sum;
}

void GradientNorm::add_squared_norm(ParameterRun& run, const Block& range, float* sum) {
  for_each_own(run, range, [&](std::size_t piece, const Block& block) {
    const std::span<float> own =
        part_of(run.own_gradients(piece), block, run.layout().pieces[piece].own.begin);
    rank_.run(rank_.kernels.squared_norm,
              {.x = {own.data(), std::ssize(own), Dtype::kFp32}, .sum = sum});
  });
}

}  // namespace meshwright
