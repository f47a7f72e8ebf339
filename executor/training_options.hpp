/// What a training run needs to know beside the plan.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace meshwright {

struct TrainingOptions {
  std::uint64_t seed = 1;  ///< of the initial parameters
  float learning_rate = 1e-3F, beta1 = 0.9F, beta2 = 0.95F, epsilon = 1e-8F;
  float weight_decay = 0.1F;
  float gradient_clip = 1;  ///< largest norm of all gradients
};

/// The text to learn, as words of the vocabulary. Step s, sequence i of the global batch reads
/// sequence_length + 1 words from (s * global_batch + i) * sequence_length on, round the end.
struct TokenText {
  std::vector<std::int32_t> words;
};

}  // namespace meshwright
