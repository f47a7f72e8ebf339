/// A rank's role in a job with parameter servers: a worker pushes gradients and pulls weights, a
/// server sums and updates its shard; a rank can be both.
///
/// Dense and expert parameters form one vector of K elements here; server s of k owns block_of(K,
/// k, s).
///
///   synchronous   the server sums the gradients of all workers in worker order and clips by the
///                 global norm over all servers
///   asynchronous  every push is a separate update with the gradient of the worker's own mean loss,
///                 clipped by that worker's norm
#pragma once

#include <memory>

#include "executor/parameters/run_layout.hpp"
#include "executor/parameters/stage_parameters.hpp"
#include "executor/transport/collectives.hpp"

namespace meshwright {

/// Workers are the first ranks of the job, servers the last ones.
struct ServerPlace {
  int ranks = 1, workers = 1, servers = 1;
  bool is_worker(RankId rank) const { return rank.value < workers; }
  bool is_server(RankId rank) const { return rank.value >= ranks - servers; }
  int server_number(RankId rank) const { return rank.value - (ranks - servers); }
};

/// Whether the rank is a server and no worker.
bool is_dedicated_server(const Strategy& strategy, RankId rank);

/// The layout on a dedicated server: only its shard.
RunLayouts server_layouts(const ServerPlace& place, RankId rank, const PartShards& shards);

class ParameterServerRank {
 public:
  /// `worker` is null on a dedicated server, `server` on a rank that is only a worker.
  ParameterServerRank(RankContext& rank, const ServerPlace& place, StageParameters* worker,
                      StageParameters* server);

  Ticks push(const Collective& collective, std::span<const RankId> members, RankGroup& group,
             MessageTag tag, Ticks ready);
  Ticks pull(const Collective& collective, std::span<const RankId> members, RankGroup& group,
             MessageTag tag, Ticks ready);

  /// Scales the gradients that this worker pushes, for clipping; initially 1.
  void scale_gradients(float scale) { scale_ = scale; }
  bool has_pushes() const { return arrived_ > 0; }
  /// Sets the server's gradients to the sum of the received pushes in worker order, or, without
  /// any, to the gradients of its own worker.
  void sum_pushes();
  /// Copies the updated weights to the worker on this rank.
  void copy_to_own_worker();

 private:
  /// Adds the elements from `first` on of every push, which has `share` elements.
  void add_pushes(std::span<float> sum, std::size_t share, std::size_t first);
  Block block_of_server(RankId server) const;
  /// Splits a block of the joint vector: calls visit(run, block) for its dense and its expert part.
  template <class Visit>
  void for_each_run(StageParameters& parameters, const Block& joint, Visit visit);
  std::vector<float> gradients_of(const Block& joint);
  std::vector<std::byte> own_weights();
  void set_weights(const Block& joint, std::span<const std::byte> values);

  RankContext& rank_;
  ServerPlace place_;
  StageParameters *worker_, *server_;
  std::int64_t dense_ = 0, all_ = 0;  ///< elements
  OwnedMatrix pushes_;                ///< [workers, share]
  int arrived_ = 0;
  float scale_ = 1;
};

}  // namespace meshwright
