/// models/examples/linear-over-two-ranks.md: linear layers 4 → 8 → 4 sharded over two ranks give
/// the result of the unsharded ones.
#include <gmock/gmock.h>

#include "core/formats/file.hpp"
#include "tests/executor/runs/expect_same.hpp"

namespace meshwright {
namespace {

TEST(SplitLinearLayer, MatchesTheUnshardedLayer) {
  const std::string config =
      read_file(MESHWRIGHT_SOURCE_DIR "/models/examples/linear-4-8-4.config.json");
  const RunOptions options{.steps = 10};
  const TrainingRun whole = run_plan(config, base(), options);
  ASSERT_FALSE(whole.failure.has_value()) << whole.failure->cause;
  EXPECT_LT(whole.steps.back().loss, whole.steps.front().loss);
  for (const bool sequence_parallel : {false, true}) {
    Strategy split = base();
    split.degrees.tensor = 2;
    split.sequence_parallel = sequence_parallel;
    expect_same_run(whole, run_plan(config, split, options));
  }
}

}  // namespace
}  // namespace meshwright
