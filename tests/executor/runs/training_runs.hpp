/// Even smaller models, for many plans of many steps.
#pragma once

#include <string>
#include <string_view>

#include "tests/executor/runs/expect_same.hpp"

namespace meshwright {

inline const std::string kTinyGpt = with_values(kGpt, {{"n_embd", "16"}, {"n_positions", "8"}});
inline const std::string kTinyLlama = with_values(
    kLlama, {{"hidden_size", "16"}, {"intermediate_size", "24"}, {"max_position_embeddings", "8"}});
inline const std::string kTinyMixtral = with_values(
    kMixtral,
    {{"hidden_size", "16"}, {"intermediate_size", "24"}, {"max_position_embeddings", "8"}});

inline Strategy tiny_strategy() {
  Strategy s = base();
  s.sequence_length = 8;
  return s;
}

inline TrainingRun train_tiny(std::string_view config, const Strategy& strategy, int steps) {
  return run_plan(config, strategy, {.steps = steps});
}

}  // namespace meshwright
