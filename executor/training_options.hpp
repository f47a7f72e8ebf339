/// What a training run needs to know beside the plan.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace meshwright {

/// Rules of routing that look at how ranks are cut. A run of one rank may follow those of another
/// plan, to be compared with it; 0: as this plan has it.
struct RoutingGroups {
  /// Context and tensor ranks, each of which fills up experts to their capacity by itself.
  int context = 0, tensor = 0;
  int nodes = 0;  ///< over which the experts are spread, for ExpertRouting::node_limit
};

struct TrainingOptions {
  std::uint64_t seed = 1;  ///< of the initial parameters, and of what dropout drops
  float learning_rate = 1e-3F, beta1 = 0.9F, beta2 = 0.95F, epsilon = 1e-8F;
  float weight_decay = 0.1F;
  float gradient_clip = 1;  ///< largest norm of all gradients
  /// By how much a step moves the score correction of an expert that got more or fewer rows than
  /// the mean (DeepSeek-V3, arXiv 2412.19437, section 2.1.2; there 0.001 too).
  float balance_rate = 1e-3F;
  RoutingGroups routing = {};
};

/// The text to learn, as words of the vocabulary. Step s, sequence i of the global batch reads
/// sequence_length + 1 words from (s * global_batch + i) * sequence_length on, round the end.
struct TokenText {
  std::vector<std::int32_t> words;
};

}  // namespace meshwright
