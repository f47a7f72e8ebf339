#include "executor/ranks/joint_outputs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "tests/executor/runs/training_runs.hpp"

namespace meshwright {
namespace {

using testing::IsEmpty;

/// The names of the linear layers with joint outputs, without their layer.
std::set<std::string> layers_with_joint_outputs(const std::string& config,
                                                const Strategy& strategy = tiny_strategy()) {
  const TinyJob job = tiny_job(config, strategy);
  std::set<std::string> names;
  for (const OperatorId id : joint_producers(job.model, strategy))
    if (id.value >= 0) {
      const std::string& name = job.model.operators[id.index()].name;
      names.insert(name.substr(name.rfind('.') + 1));
    }
  return names;
}

TEST(JointOutputs, AreQueriesKeysValuesAndGates) {
  EXPECT_EQ(layers_with_joint_outputs(kTinyGpt).size(), 1u);
  EXPECT_EQ(layers_with_joint_outputs(kTinyLlama).size(), 2u);
}

// Ranks of a context group exchange keys and values as whole buffers.
TEST(JointOutputs, AreNotExchanged) {
  Strategy strategy = tiny_strategy();
  strategy.degrees.context = 2;
  EXPECT_THAT(layers_with_joint_outputs(kTinyGpt, strategy), IsEmpty());
}

std::atomic<int> products;

/// Every linear layer is one product forward and two backward, whatever it projects to.
int products_of_a_step(const std::string& config) {
  static const KernelTable counted = [] {
    KernelTable table = kernel_table(Backend::kCpu);
    table.gemm.run = [](const Launch& launch, const Gemm& gemm) {
      ++products;
      kernel_table(Backend::kCpu).gemm.run(launch, gemm);
    };
    return table;
  }();
  Strategy strategy = tiny_strategy();
  strategy.global_batch = strategy.micro_batch;
  const TinyJob job = tiny_job(config, strategy);
  TrainingRequest request = job.request(counted);
  request.steps = 1;
  products = 0;
  const TrainingRun run = train(request);
  EXPECT_FALSE(run.failure.has_value());
  return products;
}

int linear_layers_of(const std::string& config) {
  const TinyJob job = tiny_job(config, tiny_strategy());
  return static_cast<int>(std::ranges::count_if(job.model.operators, [](const Operator& op) {
    return std::holds_alternative<Linear>(op.shape);
  }));
}

TEST(JointOutputs, AreComputedByOneProduct) {
  for (const std::string& config : {kTinyGpt, kTinyLlama})
    EXPECT_EQ(products_of_a_step(config), 3 * linear_layers_of(config)) << config;
}

}  // namespace
}  // namespace meshwright
