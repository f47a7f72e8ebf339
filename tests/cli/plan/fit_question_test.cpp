// `fit --model`: does a job fit in memory, and which change makes it fit?
#include <nlohmann/json.hpp>

#include "tests/cli/program_fixture.hpp"

namespace meshwright {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Json = nlohmann::json;

class FitQuestion : public ProgramTest {
 protected:
  ProgramRun ask(const std::string& more) const {
    return run(words_of("fit --cluster dgx-h100 --model " + more));
  }
};

TEST_F(FitQuestion, IsAnsweredInOneLineIfTheJobFits) {
  const ProgramRun run = ask("gpt2 --gpus 8 --seq 1024");
  EXPECT_EQ(run.exit_code, 0) << run.standard_error;
  EXPECT_THAT(run.standard_output,
              StartsWith("Yes: gpt2 on 8 GPUs of dgx-h100 with 1024 tokens per sequence fits: "));
  EXPECT_EQ(std::count(run.standard_output.begin(), run.standard_output.end(), '\n'), 1);
}

// 8 billion parameters with 16 to 18 bytes each (weights, gradients, Adam in fp32) need more than
// the 80 GiB of one device, and less than 160 GiB. The host memory of this cluster is unknown, so
// that the optimizer stays on the device.
TEST_F(FitQuestion, NamesTheNextSizeThatIsEnough) {
  const ProgramRun run = ask("llama-3.1-8b --gpus 1 --json");
  EXPECT_EQ(run.exit_code, 1) << run.standard_error;
  const Json json = Json::parse(run.standard_output);
  EXPECT_EQ(json.at("fits"), false);
  EXPECT_TRUE(json.at("plan").is_null());
  ASSERT_EQ(json.at("changes").size(), 1u) << "no sequence is short enough for one device";
  EXPECT_EQ(json.at("changes")[0].at("change"), "--gpus 2");
  EXPECT_EQ(ask("llama-3.1-8b --gpus 2").exit_code, 0);
}

TEST_F(FitQuestion, FindsTheFewestGpusIfNoNumberIsGiven) {
  const ProgramRun run = ask("llama-3.1-8b --json");
  EXPECT_EQ(run.exit_code, 0) << run.standard_error;
  EXPECT_EQ(Json::parse(run.standard_output).at("gpus"), 2);
}

// Freeing a choice changes neither the job nor the hardware.
TEST_F(FitQuestion, PrefersAnotherChoiceToMoreHardware) {
  const ProgramRun run =
      ask("llama-3.1-8b --gpus 8 --zero 0 --pp 1 --tp 1 --recompute full --json");
  EXPECT_EQ(run.exit_code, 1) << run.standard_error;
  const Json changes = Json::parse(run.standard_output).at("changes");
  ASSERT_FALSE(changes.empty());
  EXPECT_EQ(changes[0].at("change"), "no fixed --zero");
  for (const Json& change : changes)
    EXPECT_LE(change.at("plan").at("peak_memory_bytes"),
              change.at("plan").at("memory_capacity_bytes"));
}

// Twice the GPUs is a smaller change than a third of the sequence.
TEST_F(FitQuestion, AlsoShortensSequences) {
  const std::string job = "llama-3.1-8b --gpus 2 --cp 1 --global-batch 2 --seq ";
  const ProgramRun run = ask(job + "65536 --json");
  EXPECT_EQ(run.exit_code, 1) << run.standard_error;
  const Json changes = Json::parse(run.standard_output).at("changes");
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0].at("change"), "--gpus 4");
  const std::int64_t longest = changes[1].at("plan").at("strategy").at("seq");
  EXPECT_EQ(changes[1].at("change"), "--seq " + std::to_string(longest));
  EXPECT_LT(longest, 65536 / 2);
  EXPECT_EQ(ask(job + std::to_string(longest)).exit_code, 0);
  EXPECT_EQ(ask(job + std::to_string(longest + 1024)).exit_code, 1);
}

TEST_F(FitQuestion, IsNotMixedWithAFitToMeasurements) {
  EXPECT_THAT(run({"fit"}), fails_with(2, "missing --model or KERNELS.csv"));
  EXPECT_THAT(ask("gpt2 --like a100-sxm4-80gb"),
              fails_with(2, "cannot be combined with a fit to measurements"));
  EXPECT_THAT(run({"fit", "kernels.csv"}), fails_with(2, "--like: missing required option"));
  EXPECT_THAT(ask("gpt2 --gpus 8,16"), fails_with(2, "the question is about one job"));
}

}  // namespace
}  // namespace meshwright
