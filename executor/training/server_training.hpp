/// Training with parameter servers: the updates of a server, and clipping on its workers.
#pragma once

#include <memory>

#include "executor/parameters/parameter_server.hpp"
#include "executor/ranks/training_options.hpp"
#include "executor/training/gradient_norm.hpp"
#include "executor/training/optimizer_step.hpp"

namespace meshwright {

class ServerTraining {
 public:
  /// `worker` holds the whole model; null on a dedicated server. `ranks` of the job.
  ServerTraining(RankContext& rank, int ranks, std::span<const LayerId> layers,
                 StageParameters* worker, GradientNorm& norm, OptimizerStep& optimizer,
                 std::uint64_t seed);

  Ticks communicate(const Collective& collective, std::span<const RankId> members, RankGroup& group,
                    std::int64_t step, Ticks ready);
  /// The next optimizer task of a server. With synchronous training several servers sum first and
  /// update once the global norm is known.
  void update(std::int64_t step);
  /// Continues after `steps` training steps of an earlier run.
  void resume_after(std::int64_t steps);
  /// This server's shard of the model; null on other ranks.
  StageParameters* shard() { return shard_.get(); }

 private:
  bool is_asynchronous() const;
  void clip_own_gradients(std::int64_t step);

  RankContext& rank_;
  StageParameters* worker_;
  GradientNorm& norm_;
  OptimizerStep& optimizer_;
  std::unique_ptr<StageParameters> shard_;
  ParameterServerRank role_;
  bool pushes_are_summed_ = false;
  std::int64_t updates_ = 0;
};

}  // namespace meshwright
