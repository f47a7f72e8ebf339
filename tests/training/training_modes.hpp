/// The parallel modes of the executor, as flags of `meshwright run`.
#pragma once

#include <string>
#include <vector>

namespace meshwright {

struct TrainingMode {
  std::string name;
  int ranks = 1;
  std::string flags;        ///< in addition to those that all modes share
  bool is_mixture = false;  ///< of the mixture of experts, otherwise of GPT-2
  /// Updates use gradients of older weights: losses differ from one rank by design.
  bool is_asynchronous = false;
};

/// The single-rank run of each model comes before its other modes.
std::vector<TrainingMode> training_modes();

}  // namespace meshwright
