/// A rank's part in a job with parameter servers: it pushes gradients and pulls weights as a
/// worker, sums and updates its share as a server, or both.
///
/// Dense parameters and those of experts count as one run of K elements here; server s of k has
/// block_of(K, k, s).
///
///   in step       the server adds up the gradients of all workers in their order, and clips by the
///                 norm of all servers' sums
///   asynchronous  every push is an update of its own, of the gradient of the worker's own mean
///                 loss, clipped by that worker's norm
#pragma once

#include <memory>

#include "executor/collectives.hpp"
#include "executor/run_layout.hpp"
#include "executor/stage_parameters.hpp"

namespace meshwright {

/// Workers are the first ranks of the job, servers the last ones.
struct ServerPlace {
  int ranks = 1, workers = 1, servers = 1;
  bool is_worker(RankId rank) const { return rank.value < workers; }
  bool is_server(RankId rank) const { return rank.value >= ranks - servers; }
  int server_number(RankId rank) const { return rank.value - (ranks - servers); }
};

/// What a server holds: nothing but its share.
RunLayouts server_layouts(const ServerPlace& place, RankId rank, const PartShards& shards);

class ParameterServerRank {
 public:
  /// `worker`: null on a server apart. `server`: null on a worker that is none.
  ParameterServerRank(RankContext& rank, const ServerPlace& place, StageParameters* worker,
                      StageParameters* server);

  Ticks push(const Collective& collective, std::span<const RankId> members, RankGroup& group,
             MessageTag tag, Ticks ready);
  Ticks pull(const Collective& collective, std::span<const RankId> members, RankGroup& group,
             MessageTag tag, Ticks ready);

  /// Of what this worker pushes, to clip it; 1 at first.
  void scale_gradients(float scale) { scale_ = scale; }
  bool has_pushes() const { return arrived_ > 0; }
  /// The pushes that have arrived, added up in the order of workers, become the server's gradients;
  /// without any, what its own worker has.
  void sum_pushes();
  /// The worker on this rank reads what the server has updated.
  void hand_to_own_worker();

 private:
  /// Elements `first` … of every push, which has `share` of them.
  void add_pushes(std::span<float> sum, std::size_t share, std::size_t first);
  Block block_of_server(RankId server) const;
  /// Calls visit(run, block) for the two runs' elements of a joint block.
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
