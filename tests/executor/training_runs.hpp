/// Even smaller models, for many plans of many steps, and what it means that two runs are the same.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/executor/tiny_training.hpp"

namespace meshwright {

inline constexpr std::string_view kTinyGpt =
    R"({"model_type": "gpt2", "n_embd": 16, "n_layer": 4, "n_head": 4, "n_positions": 8,
        "vocab_size": 200, "resid_pdrop": 0, "attn_pdrop": 0, "embd_pdrop": 0})";
inline constexpr std::string_view kTinyLlama =
    R"({"model_type": "llama", "hidden_size": 16, "num_hidden_layers": 4, "intermediate_size": 24,
        "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 200,
        "max_position_embeddings": 8, "rms_norm_eps": 1e-5})";
inline constexpr std::string_view kTinyMixtral =
    R"({"model_type": "mixtral", "hidden_size": 16, "num_hidden_layers": 4,
        "intermediate_size": 24, "num_attention_heads": 4, "num_key_value_heads": 2,
        "num_local_experts": 4, "num_experts_per_tok": 2, "vocab_size": 200,
        "max_position_embeddings": 8, "rms_norm_eps": 1e-5, "rope_theta": 10000,
        "sliding_window": null})";

inline Strategy tiny_strategy() {
  Strategy s = base();
  s.sequence_length = 8;
  return s;
}

inline TrainingRun train_tiny(std::string_view config, const Strategy& strategy, int steps,
                              const TrainingOptions& options = {}) {
  const TinyJob job = tiny_job(config, strategy);
  TrainingRequest request = job.request();
  request.steps = steps;
  request.options = options;
  return train(request);
}

using Parameters = std::map<std::string, std::vector<float>>;

/// Relative to the norm of each parameter.
inline void expect_same_parameters(const Parameters& one, const Parameters& many,
                                   double tolerance) {
  ASSERT_EQ(one.size(), many.size());
  for (const auto& [name, values] : one) {
    const std::vector<float>& others = many.at(name);
    ASSERT_EQ(values.size(), others.size()) << name;
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      difference += std::pow(static_cast<double>(values[i]) - static_cast<double>(others[i]), 2);
      norm += std::pow(static_cast<double>(values[i]), 2);
    }
    EXPECT_LE(std::sqrt(difference), tolerance * std::max(1.0, std::sqrt(norm))) << name;
  }
}

inline void expect_same_run(const TrainingRun& one, const TrainingRun& many, double tolerance) {
  ASSERT_FALSE(one.failure.has_value()) << one.failure->cause;
  ASSERT_FALSE(many.failure.has_value()) << many.failure->cause;
  ASSERT_EQ(one.steps.size(), many.steps.size());
  for (std::size_t i = 0; i < one.steps.size(); ++i)
    EXPECT_NEAR(many.steps[i].loss / one.steps[i].loss, 1, tolerance) << "step " << i;
  expect_same_parameters(one.parameters, many.parameters, tolerance);
}

inline void expect_bitwise_same_run(const TrainingRun& one, const TrainingRun& many) {
  ASSERT_FALSE(one.failure.has_value()) << one.failure->cause;
  ASSERT_FALSE(many.failure.has_value()) << many.failure->cause;
  ASSERT_EQ(one.steps.size(), many.steps.size());
  for (std::size_t i = 0; i < one.steps.size(); ++i)
    EXPECT_EQ(many.steps[i].loss, one.steps[i].loss) << "step " << i;
  EXPECT_EQ(one.parameters, many.parameters);
}

}  // namespace meshwright
