#include "executor/parameters/parameter_exchange.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

/// Whether the range is one rank's shard of a piece (sums over shard groups) rather than whole
/// pieces.
bool is_shard(const ParameterRange& range, const ParameterRun& run) {
  return range.count < run.layout().pieces[run.piece_at(range.first)].all.size();
}

}  // namespace

Ticks ParameterExchange::run(const Collective& collective, StageParameters& parameters,
                             RankGroup& group, int use, Ticks ready) {
  const ParameterRange& range = collective.parameters;
  ParameterRun& run = parameters.run(range.expert);
  MW_CHECK(range.first + range.count <= run.elements());
  switch (collective.kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kReduceScatter:
      return reduce(collective, run, group, ready);
    case CollectiveKind::kAllGather: {
      Gathering gathering = begin_gather(range, run, group.size(), use);
      ready = group.all_gather(gathering.buffer, bytes_per_element(rank_.dtype), ready);
      if (!gathering.packed.empty()) copy_shards(gathering, group.size(), /*packs=*/false);
      return ready;
    }
    case CollectiveKind::kRingExchange:
      return ring_round(collective, run, group, use, ready);
    default:
      break;
  }
  MW_CHECK(false);
}

Ticks ParameterExchange::reduce(const Collective& collective, ParameterRun& run, RankGroup& group,
                                Ticks ready) {
  const ParameterRange& range = collective.parameters;
  if (collective.kind == CollectiveKind::kAllReduce)
    return group.all_reduce(rank_.strategy.zero == 0 ? floats_of(run.gradients(block_of(range)))
                                                     : run.own_gradients(run.piece_at(range.first)),
                            ready);
  const bool cuts = run.layout().shards_gradients;
  const std::size_t piece = run.piece_at(range.first);
  ready = group.reduce_scatter(
      floats_of(cuts ? run.gradients_to_reduce(piece) : run.gradients(block_of(range))), ready);
  if (cuts) run.keep_own_gradients(piece);
  return ready;
}

Ticks ParameterExchange::ring_round(const Collective& collective, ParameterRun& run,
                                    RankGroup& group, int use, Ticks ready) {
  const ParameterRange& range = collective.parameters;
  const int ranks = group.size(), round = collective.first_round;
  const bool adds = round < ranks - 1;
  if (rank_.strategy.zero == 0 || is_shard(range, run)) {
    const std::span<float> sums = rank_.strategy.zero == 0
                                      ? floats_of(run.gradients(block_of(range)))
                                      : run.own_gradients(run.piece_at(range.first));
    return adds ? group.ring_add(sums, round, ready)
                : group.ring_replace(std::as_writable_bytes(sums), sizeof(float), round, ready);
  }
  if (adds) {
    const bool cuts = run.layout().shards_gradients;
    const std::size_t piece = run.piece_at(range.first);
    const Vector sums = !cuts        ? run.gradients(block_of(range))
                        : round == 0 ? run.gradients_to_reduce(piece)
                                     : run.open_gradients(piece);
    ready = group.ring_add(floats_of(sums), round, ready);
    if (round + 2 == ranks && cuts) run.keep_own_gradients(piece);
    return ready;
  }
  const std::pair place{2 * range.part + (range.expert ? 1 : 0), range.first};
  if (round + 1 == ranks) rings_[place] = begin_gather(range, run, ranks, use);
  Gathering& gathering = rings_.at(place);
  ready = group.ring_replace(gathering.buffer, bytes_per_element(rank_.dtype), round, ready);
  if (round + 3 == 2 * ranks) {
    if (!gathering.packed.empty()) copy_shards(gathering, ranks, /*packs=*/false);
    rings_.erase(place);
  }
  return ready;
}

/// A single piece is gathered in place; the shards of several pieces are packed into one buffer.
ParameterExchange::Gathering ParameterExchange::begin_gather(const ParameterRange& range,
                                                             ParameterRun& run, int ranks,
                                                             int use) {
  Gathering gathering;
  const std::vector<ParameterPiece>& pieces = run.layout().pieces;
  std::int64_t share = 0;
  for (std::size_t p = run.piece_at(range.first);
       p < pieces.size() && pieces[p].all.begin < range.first + range.count; ++p) {
    gathering.whole.push_back(run.layout().shards_weights ? run.open_weights(p, use)
                                                          : run.weights(pieces[p].all));
    share += block_of(pieces[p].all.size(), ranks, 0).size();
  }
  if (gathering.whole.size() == 1) {
    gathering.buffer = bytes_of(gathering.whole.front());
    return gathering;
  }
  gathering.packed = rank_.uncounted(ranks, share, rank_.dtype);
  gathering.buffer = gathering.packed.bytes();
  copy_shards(gathering, ranks, /*packs=*/true);
  return gathering;
}

/// Packs all shards, of which this rank's own are up to date, or unpacks them.
void ParameterExchange::copy_shards(Gathering& gathering, int ranks, bool packs) {
  for (int rank = 0; rank < ranks; ++rank) {
    const Vector row = flat(rows_of(gathering.packed.view(), rank, 1));
    std::int64_t place = 0;
    for (const Vector& whole : gathering.whole) {
      const Block block = block_of(whole.size, ranks, rank);
      const Vector in_place = part_of(whole, block.begin, block.size());
      const Vector packed = part_of(row, place, block.size());
      rank_.run(rank_.kernels.cast,
                {.x = packs ? in_place : packed, .y = packs ? packed : in_place});
      place += block_of(whole.size, ranks, 0).size();
    }
  }
}

}  // namespace meshwright
