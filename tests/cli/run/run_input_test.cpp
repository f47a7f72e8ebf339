/// Training data of `run`, and the resulting loss.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/run/tiny_run.hpp"

namespace meshwright {
namespace {

class RunInput : public TinyRun {
 protected:
  RunInput() : TinyRun(/*layers=*/2) {}
  std::vector<double> losses(const std::string& more) const {
    return losses_of(run_program(call_of("--gpus 1 --global-batch 4 --seq 32 --json " + more)));
  }
};

/// The initial loss is ln 256 = 5.55, that of 256 equally likely tokens; it falls below the entropy
/// of letter frequencies.
TEST_F(RunInput, IsLearned) {
  const std::vector<double> all = losses("--steps 60");
  ASSERT_EQ(all.size(), 60u);
  EXPECT_NEAR(all.front(), 5.55, 0.1);
  EXPECT_LT(all.back(), 4);
}

/// The bytes of a text as token IDs.
TEST_F(RunInput, IsTheSameAsTextOrAsTokensOfTwoSizes) {
  const std::string text = "A stage that waits is a stage that costs: keep the pipeline full.\n";
  std::string two, four;
  for (const char letter : text) {
    two += {letter, '\0'};
    four += {letter, '\0', '\0', '\0'};
  }
  write_file(path("text"), text);
  write_file(path("two"), two);
  write_file(path("four"), four);
  const std::vector<double> expected = losses("--steps 2 --text " + path("text"));
  EXPECT_EQ(losses("--steps 2 --tokens " + path("two")), expected);
  EXPECT_EQ(losses("--steps 2 --token-type uint32 --tokens " + path("four")), expected);
  EXPECT_NE(losses("--steps 2"), expected);
}

}  // namespace
}  // namespace meshwright
