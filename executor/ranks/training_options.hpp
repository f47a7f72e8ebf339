/// Options of a training run that are not part of the plan.
#pragma once

#include <cstdint>

#include "executor/ranks/learning_rate.hpp"
#include "executor/ranks/token_text.hpp"

namespace meshwright {

/// Parallel degrees that affect expert routing. A single-rank run can use those of another plan to
/// be comparable with it; 0: as in this plan.
struct RoutingGroups {
  /// Numbers of context and tensor ranks; each applies the expert capacity separately.
  int context = 0, tensor = 0;
  int nodes = 0;  ///< nodes that the experts are spread over, for ExpertRouting::node_limit
};

/// The optimizer itself is part of the plan (Strategy::optimizer).
struct TrainingOptions {
  std::uint64_t seed = 1;       ///< for initial parameters and dropout
  float learning_rate = 1e-3F;  ///< peak of rate_schedule
  RateSchedule rate_schedule = {};
  float beta1 = 0.9F, beta2 = 0.95F, epsilon = 1e-8F;  ///< of AdamW
  float momentum = 0.9F;                               ///< of SGD and Muon
  float weight_decay = 0.1F;
  bool decays_norms_and_biases = true;  ///< false: no weight decay on them
  float gradient_clip = 1;              ///< maximum global gradient norm; infinite: no clipping
  /// Bias update speed of auxiliary-loss-free load balancing: change per step of the score
  /// correction of an expert with more or fewer rows than the mean (DeepSeek-V3, arXiv 2412.19437,
  /// section 2.1.2: 0.001). 0: corrections stay as they are, as in transformers.
  float balance_rate = 0;
  RoutingGroups routing = {};
};

}  // namespace meshwright
