/// Training data of `run`, and the resulting loss.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/formats/file.hpp"
#include "tests/cli/run_program.hpp"

namespace meshwright {
namespace {

using Json = nlohmann::json;

class RunInput : public testing::Test {
 protected:
  void SetUp() override {
    write_file(path("tiny.json"),
               R"({"model_type": "gpt2", "n_embd": 32, "n_layer": 2, "n_head": 4,
                   "n_positions": 64, "vocab_size": 256, "resid_pdrop": 0, "attn_pdrop": 0,
                   "embd_pdrop": 0})");
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  std::vector<double> losses(const std::string& more) const {
    std::istringstream words("run --model " + path("tiny.json") +
                             " --cluster cpu-laptop --gpus 1 --dtype fp32 --global-batch 4 "
                             "--seq 32 --json " +
                             more);
    const ProgramRun run =
        run_program({.program = MESHWRIGHT_PROGRAM,
                     .arguments = {std::istream_iterator<std::string>(words), {}},
                     .folder = folder_.path(),
                     .standard_input = ""});
    EXPECT_EQ(run.exit_code, 0) << run.standard_error;
    std::vector<double> all;
    const Json json = Json::parse(run.standard_output);
    for (const Json& step : json["steps"]) all.push_back(step["loss"]);
    return all;
  }

  const TemporaryFolder folder_;
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
