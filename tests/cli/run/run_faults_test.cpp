/// Failures of `run` as a user sees them, with every kind of ranks.
#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "tests/cli/run/tiny_run.hpp"

namespace meshwright {
namespace {

using Json = nlohmann::json;
using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;

/// Two stages of a tiny model, with ranks of one kind. Programs run in a folder of their own.
class RunFaults : public TinyRun, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    std::string cluster =
        read_file(std::string(MESHWRIGHT_SOURCE_DIR) + "/models/clusters/cpu-laptop.toml");
    const std::string latency = "latency = \"2 us\"";
    cluster.replace(cluster.find(latency), latency.size(), "latency = \"30 s\"");
    write_file(path("slow.toml"), cluster);
  }
  void TearDown() override { EXPECT_THAT(processes_left(), IsEmpty()); }

  /// --output names a file in the folder, which identifies these processes.
  ProgramCall call(const std::string& more, const std::string& cluster = "cpu-laptop") const {
    return call_of(std::string(kTwoStages) + " --ranks " + GetParam() + " -o " +
                       path("out.pftrace") + " " + more,
                   cluster);
  }
  ProgramRun run(const std::string& more) const { return run_program(call(more)); }
  /// Runs with one argument replaced.
  ProgramRun run_with(const std::string& from, const std::string& to,
                      const std::string& more) const {
    ProgramCall replaced = call(more);
    *std::find(replaced.arguments.begin(), replaced.arguments.end(), from) = to;
    return run_program(replaced);
  }
  bool has_output() const { return std::filesystem::exists(path("out.pftrace")); }

  void expect_failure(const ProgramRun& run, const std::string& message) const {
    EXPECT_THAT(run, fails_with(1, message));
    EXPECT_FALSE(has_output());
    EXPECT_EQ(folder_.file_names(), (std::vector<std::string>{"slow.toml", "tiny.json"}));
  }
};

TEST_P(RunFaults, AreNotThereWithoutAFault) {
  const ProgramRun done = run("--steps 2 --json");
  EXPECT_EQ(done.exit_code, 0) << done.standard_error;
  EXPECT_EQ(Json::parse(done.standard_output)["ranks"], GetParam());
  EXPECT_TRUE(has_output());
}

TEST_P(RunFaults, NameRankTaskAndCauseOfARankThatThrows) {
  expect_failure(run("--inject-fault rank=1,task=F2,kind=throw"),
                 "error: rank 1, r1.compute.s1.F2: injected fault\n");
}

TEST_P(RunFaults, OfMemoryAreSystemErrors) {
  EXPECT_THAT(
      run("--inject-fault rank=1,task=F2,kind=memory"),
      fails_with(4, "error: rank 1, r1.compute.s1.F2: out of memory\n  hint: use a smaller"));
  EXPECT_FALSE(has_output());
}

TEST_P(RunFaults, AreToldAsJson) {
  const ProgramRun failed = run("--inject-fault rank=1,task=B1,kind=throw,step=1 --json");
  EXPECT_EQ(failed.exit_code, 1);
  const Json error = Json::parse(failed.standard_output)["error"];
  EXPECT_EQ(error["kind"], "run");
  EXPECT_EQ(error["rank"], 1);
  EXPECT_EQ(error["task"], "r1.compute.s1.B1");
  EXPECT_EQ(error["what"], "injected fault");
}

TEST_P(RunFaults, NameARankThatCrashes) {
  const ProgramRun failed = run("--inject-fault rank=1,task=F1,kind=abort");
  expect_failure(failed, "error: rank 1, r1.compute.s1.F1: ");
  EXPECT_THAT(failed.standard_error, HasSubstr("signal 6 (Aborted)"));
}

TEST_P(RunFaults, NameARankThatHangsWithinTenSecondsUnlessAskedOtherwise) {
  const auto start = std::chrono::steady_clock::now();
  const ProgramRun failed = run("--inject-fault rank=1,task=B0,kind=hang,step=1 --patience 400ms");
  expect_failure(failed, "error: rank 1, r1.compute.s1.B0: hung: no rank made progress for");
  EXPECT_THAT(failed.standard_error, HasSubstr("for example --patience 60s"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

/// The timeout does not depend on the model: long operations report progress.
TEST_P(RunFaults, NameARankThatHangsAfterSixSecondsOfSilence) {
  const auto start = std::chrono::steady_clock::now();
  const ProgramRun failed = run("--inject-fault rank=1,task=B0,kind=hang,step=1");
  expect_failure(failed, "error: rank 1, r1.compute.s1.B0: hung: no rank made progress for 6 s\n");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST_P(RunFaults, NameARankThatDies) {
  const ProgramRun failed = run("--inject-fault rank=1,task=F2,kind=die");
  if (GetParam() == "threads") {
    EXPECT_THAT(failed, fails_with(3, "would end all ranks of '--ranks threads'"));
    return;
  }
  expect_failure(failed,
                 "error: rank 1, r1.compute.s1.F2: was killed by signal 9 (Killed)\n"
                 "  hint: check dmesg: Linux kills processes when memory runs out");
}

class RunFaultsOfProcesses : public RunFaults {};

TEST_P(RunFaultsOfProcesses, NameARankThatExitsEarly) {
  expect_failure(run("--inject-fault rank=0,task=B0,kind=exit"),
                 "error: rank 0, r0.compute.s0.B0: its process exited early, with status 0");
}

/// Stage 1 has layers 3 to 5 of embedding, four blocks and head: the corrupted weight is the first
/// linear one of layer 4.
TEST_P(RunFaults, NameStepAndOperatorWhereNumbersEnd) {
  const ProgramRun failed = run("--inject-fault rank=1,task=F3,kind=nan,step=1");
  expect_failure(failed, "error: rank 1, r1.compute.s1.F3: output of '");
  EXPECT_THAT(failed.standard_error, HasSubstr("' is not finite in step 1, layer 4\n"));
}

TEST_P(RunFaults, OfWritingLeaveNothingBehind) {
  EXPECT_THAT(run_with(path("out.pftrace"), "/dev/full", "--steps 1"),
              fails_with(4, "error: /dev/full: cannot write file: No space left"));
  EXPECT_EQ(folder_.file_names(), (std::vector<std::string>{"slow.toml", "tiny.json"}));
}

/// A failed write of --live does not stop the run.
TEST_P(RunFaults, OfWritingWhileItRunsLetItGoOn) {
  const ProgramRun failed = run_with(path("out.pftrace"), "/dev/full", "--steps 3 --live");
  EXPECT_EQ(failed.exit_code, 4) << failed.standard_error;
  EXPECT_THAT(failed.standard_error, HasSubstr("warning: /dev/full: cannot write file: No space"));
  EXPECT_THAT(failed.standard_error, HasSubstr("step   2"));
  EXPECT_THAT(failed.standard_error, HasSubstr("error: /dev/full: cannot write file: No space"));
}

TEST_P(RunFaults, OfMemoryAreForeseen) {
  const ProgramRun failed = run_with(path("tiny.json"), "gpt3-175b", "--steps 1");
  EXPECT_EQ(failed.exit_code, 4);
  EXPECT_THAT(failed.standard_error,
              testing::ContainsRegex("error: memory: peak memory of 2 ranks is [0-9.]+ [GT]iB, but "
                                     "only [0-9.]+ [GT]iB are available on this machine"));
}

// ---- Ctrl-C ----

TEST_P(RunFaults, CtrlCWritesTheMedianOfTheStepsThatWereDone) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const ProgramRun stopped = run_and_signal(call("--steps 100000 --json"), signal);
    EXPECT_EQ(stopped.exit_code, 130) << stopped.standard_error;
    const Json json = Json::parse(stopped.standard_output);
    EXPECT_TRUE(json["interrupted"]);
    EXPECT_GE(json["steps"].size(), 4u);
    const Timeline timeline = written_timeline();
    EXPECT_EQ(to_nanoseconds(makespan(timeline)), json["step_time_ns"]);
    EXPECT_THAT(timeline.provenance.at("steps"), HasSubstr("interrupted after "));
    std::filesystem::remove(path("out.pftrace"));
  }
}

/// With messages of 30 s no rank finishes the first step: the second stage waits for its first
/// input and has computed nothing.
TEST_P(RunFaults, CtrlCInTheFirstStepWritesTheTasksThatWereDone) {
  ProgramCall interrupted = call("--clock wall --links modelled --patience 60s", path("slow.toml"));
  interrupted.interrupt_after = "tasks per step";
  const ProgramRun stopped = run_program(interrupted);
  EXPECT_EQ(stopped.exit_code, 130) << stopped.standard_error;
  EXPECT_THAT(stopped.standard_output, HasSubstr("interrupted after 0 of 5 steps"));
  const Timeline timeline = written_timeline();
  for (const TimelineSpan& span : timeline.spans) {
    const TimelineTrack& track = timeline.tracks[static_cast<std::size_t>(span.track)];
    EXPECT_TRUE(track.rank == RankId(0) || track.stream != Stream::kCompute);
  }
}

/// The first Ctrl-C would wait for the end of the step, to save it.
TEST_P(RunFaults, ASecondCtrlCDoesNotWaitForTheCheckpoint) {
  ProgramCall interrupted = call(
      "--clock wall --links modelled --patience 60s --save saved.safetensors", path("slow.toml"));
  interrupted.interrupt_after = "tasks per step";
  interrupted.signals = 2;
  const ProgramRun stopped = run_program(interrupted);
  EXPECT_EQ(stopped.exit_code, 130) << stopped.standard_error;
  EXPECT_THAT(stopped.standard_output, HasSubstr("interrupted after 0 of 5 steps"));
  EXPECT_THAT(stopped.standard_error, testing::Not(HasSubstr("saved")));
  EXPECT_FALSE(std::filesystem::exists(path("saved.safetensors")));
  EXPECT_EQ(written_timeline().origin, TimelineOrigin::kMeasured);
}

INSTANTIATE_TEST_SUITE_P(Kinds, RunFaults, testing::Values("threads", "processes"),
                         [](const auto& kind) { return kind.param; });
INSTANTIATE_TEST_SUITE_P(Kinds, RunFaultsOfProcesses, testing::Values("processes"),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace meshwright
