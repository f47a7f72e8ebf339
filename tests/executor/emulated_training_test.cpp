/// Training with the cuda kernels, without a GPU: the processor plays it (tests/kernels/emulated),
/// in memory that the host cannot touch, and all work is done as late as it may
/// (tests/kernels/late_device.hpp), where cuBLASLt's working memory of eight products fills the
/// device and ranks wait for each other's. What nvcc makes of the kernels is not shown.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

#include "tests/executor/expect_same.hpp"
#include "tests/kernels/emulated/table.hpp"
#include "tests/kernels/late_device.hpp"

namespace meshwright {
namespace {

constexpr std::string_view kSmallGpt =
    R"({"model_type": "gpt2", "n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 16,
        "vocab_size": 200, "resid_pdrop": 0, "attn_pdrop": 0, "embd_pdrop": 0})";
constexpr std::string_view kSmallMixtral =
    R"({"model_type": "mixtral", "hidden_size": 32, "num_hidden_layers": 1,
        "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2,
        "num_local_experts": 4, "num_experts_per_tok": 2, "vocab_size": 200,
        "max_position_embeddings": 16, "rms_norm_eps": 1e-5, "rope_theta": 10000,
        "sliding_window": null})";

struct Case {
  std::string name;
  std::string_view config;
  void (*change)(Strategy&);
  friend void PrintTo(const Case& tried, std::ostream* out) { *out << tried.name; }
};

class EmulatedTraining : public testing::TestWithParam<Case> {
 protected:
  /// Two micro-batches of one sequence on every data rank.
  static Strategy strategy() {
    Strategy s = base();
    GetParam().change(s);
    s.global_batch = 2 * s.degrees.data;
    return s;
  }
  static TrainingRun run(const KernelTable& kernels, const DeviceTable* device) {
    const TinyJob job = tiny_job(GetParam().config, strategy());
    // Whoever waits does the work of all, for seconds, while no other rank moves.
    TrainingRequest request{.plan = job.plan,
                            .model = job.model,
                            .graph = job.graph,
                            .cost_model = *job.cost_model,
                            .text = job.text,
                            .kernels = kernels,
                            .device = device,
                            .clock = TimelineClock::kWall,
                            .steps = 2,
                            .keep_parameters = true,
                            .launch = {.patience = std::chrono::minutes(4)}};
    return train(request);
  }
};

/// Sums in another order lose some 1e-6 of the norm in fp32; bf16 rounds each activation to 2^-8,
/// of which two steps of AdamW leave about that.
TEST_P(EmulatedTraining, ComputesWhatTheHostComputes) {
  const bool is_wide = strategy().dtype == Dtype::kFp32;
  expect_same_run(run(kernel_table(Backend::kCpu), nullptr),
                  run(late_kernels<emulated_table>(), &late_device()), is_wide ? 1e-4 : 2e-2);
}

INSTANTIATE_TEST_SUITE_P(
    Strategies, EmulatedTraining,
    testing::Values(Case{"bf16", kSmallGpt, [](Strategy& s) { s.dtype = Dtype::kBf16; }},
                    Case{"tensor_2_sequence", kSmallGpt,
                         [](Strategy& s) { s.degrees.tensor = 2, s.sequence_parallel = true; }},
                    Case{"pipeline_2", kSmallGpt, [](Strategy& s) { s.degrees.pipeline = 2; }},
                    Case{"zero_1", kSmallGpt, [](Strategy& s) { s.degrees.data = 2, s.zero = 1; }},
                    Case{"experts_2", kSmallMixtral,
                         [](Strategy& s) { s.degrees.data = 2, s.degrees.expert = 2; }}),
    [](const auto& tried) { return tried.param.name; });

}  // namespace
}  // namespace meshwright
