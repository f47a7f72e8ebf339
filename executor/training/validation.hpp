/// The loss of held-out tokens between training steps: forward passes of the plan's own tasks.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/tasks/rank_run.hpp"
#include "executor/training/training_actions.hpp"

namespace meshwright {

/// When to compute the loss of which tokens; without text never.
struct ValidationOptions {
  const TokenText* text = nullptr;
  std::int64_t batches = 0;  ///< global batches, from the first token on
  int every = 0;             ///< training steps; 0: after the last step only
  /// `completed`: number of steps of the whole training, resumed parts included.
  bool follows(std::int64_t completed, bool is_last) const {
    return text != nullptr && (is_last || (every > 0 && completed % every == 0));
  }
};

/// Of one rank; all ranks must call mean_loss() after the same steps.
class Validation {
 public:
  /// All must outlive it.
  Validation(const RunnableGraph& runnable, TrainingActions& actions, Communicator& communicator,
             RankProgress& progress, const ValidationOptions& options);
  /// The mean over all tokens, the same on all ranks. Leaves parameters and optimizer state as
  /// they are. Throws if it is not finite.
  double mean_loss();

 private:
  const RunnableGraph& runnable_;
  TrainingActions& actions_;
  Communicator& communicator_;
  RankProgress& progress_;
  ValidationOptions options_;
  std::vector<TaskId> tasks_;
};

/// Losses of several ranks as one sum, the same on all of them.
LossSums::Sum sum_over_ranks(Communicator& communicator, const LossSums::Sum& share);

}  // namespace meshwright
