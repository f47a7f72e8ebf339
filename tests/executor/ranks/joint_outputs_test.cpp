#include "executor/ranks/joint_outputs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "tests/executor/runs/training_runs.hpp"

namespace meshwright {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Sizes of the groups of the first layer.
std::vector<std::size_t> groups_of(const std::string& config,
                                   const Strategy& strategy = tiny_strategy()) {
  const TinyJob job = tiny_job(config, strategy);
  const std::vector<JointOutputs> joint =
      joint_outputs_of(job.model, layer_shardings_of(job.model, strategy, {}));
  std::vector<std::size_t> sizes;
  for (const Operator& op : operators_of(job.model, LayerId(1)))
    for (std::size_t i = 0; i < op.outputs.size(); ++i)
      if (const JointOutputs& mine = joint[op.outputs[i].index()];
          mine.count > 0 && mine.first == i)
        sizes.push_back(mine.count);
  return sizes;
}

// Rotated queries and keys are freed once they are rotated, values are kept.
TEST(JointOutputs, AreNeededAtTheSameTime) {
  EXPECT_THAT(groups_of(kTinyGpt), ElementsAre(3));       // queries, keys, values
  EXPECT_THAT(groups_of(kTinyLlama), ElementsAre(2, 2));  // queries, keys; gate, up
}

// Ranks of a context group exchange keys and values as whole buffers.
TEST(JointOutputs, AreNotExchanged) {
  Strategy strategy = tiny_strategy();
  strategy.degrees.context = 2;
  EXPECT_THAT(groups_of(kTinyGpt, strategy), IsEmpty());
}

std::atomic<int> products;

/// Every product forward has two backward.
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

// In each of 4 layers: queries, keys, values; output; up; down. Then the logits.
TEST(JointOutputs, AreComputedByOneProduct) {
  EXPECT_EQ(products_of_a_step(kTinyGpt), 3 * (4 * 4 + 1));
  EXPECT_EQ(products_of_a_step(kTinyLlama), 3 * (4 * 5 + 1));  // values by one of their own
}

}  // namespace
}  // namespace meshwright
