/// Lower bound of the memory of everything below a layout, from its model state alone: decides
/// layouts of models that are far too large before their layers are priced.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/units.hpp"
#include "core/lowering/lower.hpp"
#include "planner/search/memory_screen.hpp"
#include "planner/search/search_job.hpp"
#include "planner/search/space.hpp"

namespace meshwright {

class StateBound {
 public:
  StateBound(const SearchJob& job, const SearchSpace& space);

  /// nullopt: may fit. Weights, gradients and optimizer state of the mean pipeline rank, which the
  /// fullest one has at least, with the replication that shards them most; activations, buffers and
  /// gathered units are not counted. O(replications that differ in state).
  std::optional<MemoryShortfall> shortfall_of(const SearchSpace::Branch& branch) const;

  /// The replication that shortfall_of() counts.
  const Replication& leanest(const SearchSpace::Branch& branch) const;

 private:
  struct Sharding {
    std::size_t replication = 0;  ///< the first one in its list
    ModelStateBytes state;
    int zero = 0;
    std::int64_t shard_ranks = 0;  ///< 0: all replicas
    bool offloads_optimizer = false;
  };
  struct Found {
    Bytes needed;
    const Sharding* sharding = nullptr;
  };
  std::vector<Sharding> shardings_of(const SearchJob& job,
                                     const std::vector<Replication>& replications) const;
  Found least_state(const SearchSpace::Branch& branch) const;

  const SearchSpace& space_;
  Bytes capacity_;                                ///< of the device with the most memory
  bool counts_state_ = false;                     ///< false: not all state is on the devices
  std::int64_t dense_ = 0, expert_ = 0;           ///< parameters trained by gradient
  std::vector<std::vector<Sharding>> shardings_;  ///< by list of replications
};

}  // namespace meshwright
