/// The modes in which the executor trains, each as the flags of `meshwright run` that ask for it.
#pragma once

#include <string>
#include <vector>

namespace meshwright {

struct TrainingMode {
  std::string name;
  int ranks = 1;
  std::string flags;        ///< beside the model, the cluster and what all modes have in common
  bool is_mixture = false;  ///< of a mixture of experts; else of GPT-2
  /// Updates by gradients of older weights: not the losses of one rank, by design.
  bool is_asynchronous = false;
};

/// The one-rank run of either model comes before its other modes.
std::vector<TrainingMode> training_modes();

}  // namespace meshwright
