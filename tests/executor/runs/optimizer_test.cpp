/// Options of the optimizer: their effect on the parameters, and the same effect under every plan.
#include <limits>

#include "tests/executor/runs/gradient_oracle.hpp"
#include "tests/executor/runs/training_runs.hpp"

namespace meshwright {
namespace {

constexpr float kNoClipping = std::numeric_limits<float>::infinity();

Strategy with_optimizer(OptimizerKind optimizer, Strategy strategy = tiny_strategy()) {
  strategy.optimizer = optimizer;
  return strategy;
}

/// Parameters after some steps on one rank.
Parameters trained(const TrainingOptions& options, int steps) {
  const TrainingRun run =
      run_plan(kTinyGpt, tiny_strategy(), {.training = options, .steps = steps});
  EXPECT_FALSE(run.failure.has_value()) << run.failure->cause;
  return run.parameters;
}

bool is_norm_or_bias_by_name(const std::string& name) {
  return name.ends_with("bias") || name.find("norm") != std::string::npos;
}

// One step of AdamW with decay d moves a weight by -rate * d * w more than without.
TEST(Optimizer, DecaysNormsAndBiasesUnlessToldNotTo) {
  TrainingOptions options;
  options.learning_rate = 0;
  const Parameters initial = trained(options, 1);
  options.learning_rate = 0.5F, options.weight_decay = 0;
  const Parameters without = trained(options, 1);
  options.weight_decay = 0.25F;
  const Parameters all = trained(options, 1);
  options.decays_norms_and_biases = false;
  const Parameters matrices = trained(options, 1);
  int vectors = 0;
  for (const auto& [name, start] : initial) {
    const bool is_vector = is_norm_or_bias_by_name(name);
    vectors += is_vector ? 1 : 0;
    for (std::size_t i = 0; i < start.size(); ++i) {
      const float decayed = without.at(name)[i] - 0.5F * 0.25F * start[i];
      EXPECT_NEAR(all.at(name)[i], decayed, 1e-6) << name;
      EXPECT_NEAR(matrices.at(name)[i], is_vector ? without.at(name)[i] : decayed, 1e-6) << name;
    }
  }
  EXPECT_EQ(vectors, 4 * 8 + 2);  // two norms and four linear biases in a block, a norm at the end
}

TEST(Optimizer, FollowsTheRateSchedule) {
  TrainingOptions options;
  options.learning_rate = 0.01F;
  options.rate_schedule = {.decay = RateDecay::kLinear, .total = 2};  // 0.01, 0.005, 0
  EXPECT_EQ(trained(options, 3), trained(options, 2));
  EXPECT_NE(trained(options, 2), trained(options, 1));
  const Parameters once = trained(options, 1);
  options.rate_schedule = {};
  EXPECT_EQ(trained(options, 1), once);
}

/// SGD in plain code: v = momentum v + g + decay w; w = w - rate v.
TEST(Optimizer, UpdatesBySgdWithMomentum) {
  TrainingOptions options;
  options.learning_rate = 0.5F, options.momentum = 0.75F, options.weight_decay = 0.125F;
  options.gradient_clip = kNoClipping;
  GradientOracle oracle(kTinyGpt, tiny_strategy());
  Emulated emulated;
  std::vector<float> weights = oracle.initial_weights(), velocity(weights.size());
  for (int step = 0; step < kSteps; ++step) {
    const auto result = oracle.at(weights, step);
    emulated.losses.push_back(result.loss);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      velocity[i] = 0.75F * velocity[i] + result.gradient[i] + 0.125F * weights[i];
      weights[i] -= 0.5F * velocity[i];
    }
  }
  emulated.parameters = oracle.by_name(weights);
  expect_emulated(run_plan(kTinyGpt, with_optimizer(OptimizerKind::kSgd), {.training = options}),
                  emulated);
}

/// One fp32 moment per parameter instead of two, in the plan and in the run.
TEST(Optimizer, KeepsOneMomentWithSgd) {
  const TinyJob adamw = tiny_job(kTinyGpt, tiny_strategy());
  const TinyJob sgd = tiny_job(kTinyGpt, with_optimizer(OptimizerKind::kSgd));
  const auto planned = [](const TinyJob& job) {
    return job.graph.ranks.front().resident[MemoryClass::kOptimizer];
  };
  const auto measured = [](const TinyJob& job) {
    return train(job.request()).peak_memory.front()[MemoryClass::kOptimizer];
  };
  const Bytes moment(parameter_count(adamw.model) * std::int64_t{sizeof(float)});
  EXPECT_GE(planned(sgd), moment);  // the vocabulary is padded
  EXPECT_EQ(planned(adamw), planned(sgd) * 2);
  EXPECT_EQ(measured(sgd), planned(sgd));
  EXPECT_EQ(measured(adamw), planned(adamw));
}

TEST(Optimizer, ReportsTheNormOfAllGradientsBeforeClipping) {
  TrainingOptions options;
  options.gradient_clip = 1e-3F;
  GradientOracle oracle(kTinyGpt, tiny_strategy());
  double sum = 0;
  for (const float g : oracle.at(oracle.initial_weights(), 0).gradient)
    sum += static_cast<double>(g) * static_cast<double>(g);
  const TrainingRun run = run_plan(kTinyGpt, tiny_strategy(), {.training = options, .steps = 1});
  EXPECT_NEAR(run.steps.front().gradient_norm.value(), std::sqrt(sum), 1e-6);
}

/// Every worker clips by the norm of its own gradients.
TEST(Optimizer, ReportsNoNormOfAsynchronousUpdates) {
  Strategy workers = tiny_strategy();
  use_servers(workers, 2, 1, DataParallelKind::kAsyncParameterServer);
  const TrainingRun run = run_plan(kTinyGpt, workers, {.steps = 1});
  EXPECT_EQ(run.steps.front().gradient_norm, std::nullopt);
}

/// Options far from the defaults, with every value used.
TrainingOptions options_of_adamw() {
  TrainingOptions options;
  options.learning_rate = 0.02F, options.beta1 = 0.8F, options.beta2 = 0.9F;
  options.epsilon = 1e-5F, options.weight_decay = 0.3F, options.gradient_clip = 0.25F;
  options.decays_norms_and_biases = false;
  options.rate_schedule = {.decay = RateDecay::kCosine, .warmup = 2, .total = 6, .minimum = 1e-3F};
  return options;
}
TrainingOptions options_of_sgd() {
  TrainingOptions options = options_of_adamw();
  options.learning_rate = 0.5F, options.momentum = 0.8F, options.weight_decay = 0.01F;
  return options;
}

std::vector<NamedPlan> plans() {
  using S = Strategy&;
  return {
      {"tensor_2_pipeline_2", kTinyGpt,
       [](S s) { use_sequence_parallel(s, 2), s.degrees.pipeline = 2; }},
      {"zero_2_buckets", kTinyLlama,
       [](S s) {
         use_data(s, 4, 2);
         s.data_parallelism.buckets = {BucketRule::kBytes, Bytes(9000)};
       }},
      {"zero_3", kTinyLlama, [](S s) { use_data(s, 4, 3); }},
      {"zero_1_offload", kTinyGpt,
       [](S s) { use_data(s, 2, 1), s.data_parallelism.offload_optimizer = true; }},
      {"zb_v_context_2", kTinyLlama,
       [](S s) { use_pipeline(s, 2, "zb-v", 2), s.degrees.context = 2; }},
      {"servers", kTinyGpt, [](S s) { use_servers(s, 2, 2); }},
      {"experts", kTinyMixtral, [](S s) { s.degrees.data = 2, s.degrees.expert = 2, s.zero = 1; }},
      {"one_process", kTinyGpt,
       [](S s) {
         s.degrees.data = 2;
         s.data_parallelism.kind = DataParallelKind::kOneProcess;
       }},
  };
}

class OptimizerUnderPlans : public testing::TestWithParam<NamedPlan> {};

TEST_P(OptimizerUnderPlans, MatchesOneRank) {
  for (const OptimizerKind optimizer : {OptimizerKind::kAdamW, OptimizerKind::kSgd}) {
    const bool is_sgd = optimizer == OptimizerKind::kSgd;
    const RunOptions run{.training = is_sgd ? options_of_sgd() : options_of_adamw(), .steps = 5};
    const TrainingRun one = run_plan(GetParam().config, with_optimizer(optimizer), run);
    const TrainingRun many = run_plan(
        GetParam().config, with_optimizer(optimizer, GetParam().applied_to(tiny_strategy())), run);
    expect_same_run(one, many);
    for (std::size_t step = 0; step < one.steps.size(); ++step)
      EXPECT_NEAR(many.steps[step].gradient_norm.value() / one.steps[step].gradient_norm.value(), 1,
                  1e-4);
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, OptimizerUnderPlans, testing::ValuesIn(plans()), plan_name);

}  // namespace
}  // namespace meshwright
