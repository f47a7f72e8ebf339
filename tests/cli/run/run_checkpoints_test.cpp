/// Interrupting and resuming `run`.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/cli/run/tiny_run.hpp"

namespace meshwright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class RunCheckpoints : public TinyRun {
 protected:
  RunCheckpoints() : TinyRun(/*layers=*/2) { std::filesystem::create_directory(path("states")); }
  ProgramCall call(const std::string& options) const {
    return call_of(std::string(kTwoStages) + " --json " + options);
  }
  ProgramRun run_with(const std::string& options) const { return run_program(call(options)); }
  std::vector<std::string> saved() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path("states")))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
};

class InterruptedRun : public RunCheckpoints, public testing::WithParamInterface<std::string> {};

/// The checkpoint has all completed steps, so that the next run continues as if there had been one.
TEST_P(InterruptedRun, SavesTheStepThatItCompletes) {
  const std::string ranks = " --ranks " + GetParam();
  for (const int signal : {SIGINT, SIGTERM}) {
    const ProgramRun stopped =
        run_and_signal(call("--steps 100000 --save states/" + ranks), signal);
    EXPECT_EQ(stopped.exit_code, 130) << stopped.standard_error;
    const std::size_t steps = nlohmann::json::parse(stopped.standard_output)["steps"].size();
    ASSERT_GE(steps, 4u);
    const std::string name = fmt::format("step-{:06}.safetensors", steps);
    EXPECT_THAT(saved(), ElementsAre(name));
    EXPECT_THAT(stopped.standard_error, HasSubstr("saved states/" + name));
    const ProgramRun resumed = run_with("--steps 2 --resume states" + ranks);
    EXPECT_THAT(resumed.standard_error, HasSubstr(fmt::format("resuming at step {}\n", steps)));
    EXPECT_THAT(resumed.standard_error, HasSubstr(fmt::format("step {:>3}  loss", steps + 1)));
    std::vector<double> whole = losses_of(run_with(fmt::format("--steps {}", steps + 2)));
    whole.erase(whole.begin(), whole.end() - 2);
    EXPECT_EQ(losses_of(resumed), whole);
    std::filesystem::remove(path("states/" + name));
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, InterruptedRun, testing::Values("threads", "processes", "job"),
                         [](const auto& kind) { return kind.param; });

/// The validation loss of a checkpoint is that after its last step, on ranks of every kind.
TEST_F(RunCheckpoints, AreValidatedByARunOfNoSteps) {
  write_file(path("held-out"), std::string(150, 'a'));
  const std::string validation = " --validation held-out";
  const ProgramRun trained = run_with("--steps 3 --save states/" + validation);
  ASSERT_EQ(trained.exit_code, 0) << trained.standard_error;
  const double expected =
      nlohmann::json::parse(trained.standard_output)["steps"][2]["validation_loss"];
  for (const char* ranks : {"threads", "processes", "job"}) {
    const ProgramRun run =
        run_with("--steps 0 --resume states --ranks " + std::string(ranks) + validation);
    ASSERT_EQ(run.exit_code, 0) << run.standard_error;
    const auto json = nlohmann::json::parse(run.standard_output);
    EXPECT_EQ(json["validation_loss"], expected) << ranks;
    EXPECT_TRUE(json["steps"].empty());
  }
}

/// Initial weights, before the first step: training from them is training from the start.
TEST_F(RunCheckpoints, AreWrittenByARunOfNoSteps) {
  ASSERT_EQ(run_with("--steps 0 --save states/").exit_code, 0);
  EXPECT_THAT(saved(), ElementsAre("step-000000.safetensors"));
  EXPECT_EQ(losses_of(run_with("--steps 3 --resume states")), losses_of(run_with("--steps 3")));
}

/// Checkpoints of later steps are those of another run.
TEST_F(RunCheckpoints, AreRemovedButForTheNewest) {
  write_file(path("states/step-000100.safetensors"), "of another run");
  losses_of(run_with("--steps 5 --save states --save-every 1 --keep 2"));
  EXPECT_THAT(saved(), ElementsAre("step-000004.safetensors", "step-000005.safetensors",
                                   "step-000100.safetensors"));
}

/// A directory per checkpoint, which --init and from_pretrained() read.
TEST_F(RunCheckpoints, AreModelsForHuggingFace) {
  losses_of(run_with("--steps 3 --save states --save-every 1 --keep 2 --format hf"));
  EXPECT_THAT(saved(), ElementsAre("step-000002", "step-000003"));
  const auto config = nlohmann::json::parse(read_file(path("states/step-000003/config.json")));
  EXPECT_EQ(config["model_type"], "gpt2");
  const std::vector<double> whole = losses_of(run_with("--steps 4"));
  const std::vector<double> after = losses_of(run_with("--steps 1 --init states/step-000003"));
  ASSERT_EQ(after.size(), 1u);
  EXPECT_LT(after.front(), whole.front());
}

TEST_F(RunCheckpoints, AreResumedFromTheNewestThatIsWhole) {
  const std::vector<double> whole = losses_of(run_with("--steps 5 --save states --save-every 2"));
  std::filesystem::resize_file(path("states/step-000005.safetensors"), 1000);
  const ProgramRun resumed = run_with("--total-steps 5 --resume states");
  EXPECT_THAT(resumed.standard_error,
              HasSubstr("resuming from states/step-000004.safetensors\nresuming at step 4\n"));
  EXPECT_EQ(losses_of(resumed), std::vector<double>{whole.back()});
}

TEST_F(RunCheckpoints, WarnOfWhatDiffersWhenTheyAreResumed) {
  losses_of(run_with("--steps 2 --lr 0.01 --seed 3 --save state"));
  EXPECT_THAT(run_with("--steps 1 --lr 0.01 --resume state").standard_error,
              Not(HasSubstr("warning")));
  write_file(path("text"), "Another text, which is long enough for a few tokens.");
  EXPECT_THAT(run_with("--steps 1 --seed 4 --text text --clip 0.5 --resume state").standard_error,
              HasSubstr("warning: --clip is 0.5, but the checkpoint was saved with 1\n"
                        "warning: --lr is 0.001, but the checkpoint was saved with 0.01\n"
                        "warning: --resume: the training text differs from that of the checkpoint\n"
                        "warning: --seed 4 has no effect: the checkpoint was saved with seed 3\n"));
  EXPECT_THAT(run_with("--total-steps 2 --resume state"),
              fails_with(3,
                         "error: --total-steps: the checkpoint has completed 2 steps already, "
                         "got 2"));
}

}  // namespace
}  // namespace meshwright
