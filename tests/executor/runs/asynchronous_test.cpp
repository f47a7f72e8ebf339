/// Asynchronous parameter servers against a serial emulation of their staleness.
#include "tests/executor/runs/adamw_emulation.hpp"
#include "tests/executor/runs/gradient_oracle.hpp"
#include "tests/executor/runs/training_runs.hpp"

namespace meshwright {
namespace {

/// Worker w of N computes its part of step t at the weights it pulled last, block by block. Then
/// server s takes pushes in rounds: in round r from worker w with s = (w + r) mod k, workers in
/// order. A worker pulls the block right after its own push: N - 1 updates of other workers come
/// between this and its next push.
Emulated emulate(std::string_view config, const Strategy& strategy, int steps) {
  const int workers = strategy.degrees.data, servers = strategy.data_parallelism.servers;
  Strategy alone = tiny_strategy();
  alone.global_batch = strategy.global_batch / workers;
  GradientOracle oracle(config, alone);
  std::vector<float> weights = oracle.initial_weights();
  const auto elements = static_cast<std::int64_t>(weights.size());
  std::vector<std::vector<float>> seen(static_cast<std::size_t>(workers), weights);
  std::vector<EmulatedAdamW> all;
  for (int s = 0; s < servers; ++s)
    all.emplace_back(TrainingOptions(), block_of(elements, servers, s));
  Emulated made;
  for (int step = 0; step < steps; ++step) {
    std::vector<std::vector<float>> gradients;
    double loss = 0;
    for (int w = 0; w < workers; ++w) {
      auto result = oracle.at(seen[static_cast<std::size_t>(w)], step * workers + w);
      clip(result.gradient, static_cast<double>(TrainingOptions().gradient_clip));
      gradients.push_back(std::move(result.gradient));
      loss += result.loss / workers;
    }
    made.losses.push_back(loss);
    for (int turn = 0; turn < servers; ++turn)
      for (int w = 0; w < workers; ++w) {
        EmulatedAdamW& server = all[static_cast<std::size_t>((w + turn) % servers)];
        server.update(weights, gradients[static_cast<std::size_t>(w)]);
        const Block& block = server.block();
        std::copy(weights.begin() + block.begin, weights.begin() + block.end,
                  seen[static_cast<std::size_t>(w)].begin() + block.begin);
      }
  }
  made.parameters = oracle.by_name(weights);
  return made;
}

struct Case {
  friend void PrintTo(const Case& tried, std::ostream* out) { *out << tried.name; }
  std::string name;
  std::string_view config;
  int workers, servers;
  bool colocated;
};

class AsynchronousServers : public testing::TestWithParam<Case> {};

TEST_P(AsynchronousServers, MatchTheirEmulation) {
  const Case& c = GetParam();
  Strategy strategy = tiny_strategy();
  use_servers(strategy, c.workers, c.servers, DataParallelKind::kAsyncParameterServer);
  strategy.data_parallelism.colocated_servers = c.colocated;
  constexpr int kManySteps = 10;
  const TrainingRun run = train_tiny(c.config, strategy, kManySteps);
  expect_emulated(run, emulate(c.config, strategy, kManySteps));
  expect_bitwise_same_run(run, train_tiny(c.config, strategy, kManySteps));

  // Staleness has an effect: synchronous training gives different results.
  strategy.data_parallelism.kind = DataParallelKind::kParameterServer;
  EXPECT_GT(
      std::abs(
          train_tiny(c.config, strategy, kManySteps).steps.back().loss / run.steps.back().loss - 1),
      1e-4);
}

INSTANTIATE_TEST_SUITE_P(Plans, AsynchronousServers,
                         testing::Values(Case{"gpt_2_workers_1_server", kTinyGpt, 2, 1, false},
                                         Case{"gpt_4_workers_2_servers", kTinyGpt, 4, 2, false},
                                         Case{"llama_4_workers_3_colocated", kTinyLlama, 4, 3,
                                              true}),
                         [](const auto& tried) { return tried.param.name; });

}  // namespace
}  // namespace meshwright
