/// Data-parallel communication of parameters and gradients: reductions, gathers, and single rounds
/// of explicit rings.
#pragma once

#include <map>
#include <vector>

#include "executor/parameters/stage_parameters.hpp"
#include "executor/transport/collectives.hpp"

namespace meshwright {

class ParameterExchange {
 public:
  explicit ParameterExchange(RankContext& rank) : rank_(rank) {}

  /// Runs a collective with a ParameterRange. Sharded pieces that it gathers stay open for `use`.
  Ticks run(const Collective& collective, StageParameters& parameters, RankGroup& group, int use,
            Ticks ready);

 private:
  /// A gather in progress. Shard i of every piece is block_of(elements, ranks, i).
  struct Gathering {
    std::vector<Vector> whole;    ///< by piece of the range
    OwnedMatrix packed;           ///< [ranks, n]: with several pieces, each rank's shards
    std::span<std::byte> buffer;  ///< communicated bytes
  };
  Ticks reduce(const Collective& collective, ParameterRun& run, RankGroup& group, Ticks ready);
  Ticks ring_round(const Collective& collective, ParameterRun& run, RankGroup& group, int use,
                   Ticks ready);
  Gathering begin_gather(const ParameterRange& range, ParameterRun& run, int ranks, int use);
  void copy_shards(Gathering& gathering, int ranks, bool packs);

  RankContext& rank_;
  std::map<std::pair<std::int32_t, std::int64_t>, Gathering> rings_;  ///< by run and first element
};

}  // namespace meshwright
