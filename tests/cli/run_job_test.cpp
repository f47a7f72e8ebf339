/// `run --ranks job` and `--ranks nccl` as a user starts them: with copies of the program, and as
/// one of the processes that somebody else has started.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/io_file.hpp"
#include "core/io_pftrace.hpp"
#include "kernels/cuda_library.hpp"
#include "tests/cli/run_program.hpp"

namespace meshwright {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

class RunJob : public testing::Test {
 protected:
  void SetUp() override {
    write_file((folder_.path() / "tiny.json").string(),
               R"({"model_type": "gpt2", "n_embd": 32, "n_layer": 4, "n_head": 4,
                   "n_positions": 64, "vocab_size": 256, "resid_pdrop": 0, "attn_pdrop": 0,
                   "embd_pdrop": 0})");
  }
  void TearDown() override {
    for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_PORT"}) unsetenv(name);
  }
  ProgramRun run(const std::string& more) const {
    return run_program(call_of(more + " --steps 3"));
  }
  ProgramCall call_of(const std::string& more) const {
    std::istringstream stream("run --model " + (folder_.path() / "tiny.json").string() +
                              " --cluster cpu-laptop --gpus 2 --pp 2 --dtype fp32 "
                              "--global-batch 4 --seq 16 --ranks " +
                              more);
    return {.program = MESHWRIGHT_PROGRAM,
            .arguments = {std::istream_iterator<std::string>(stream), {}},
            .folder = folder_.path(),
            .standard_input = ""};
  }
  const TemporaryFolder folder_;
};

TEST_F(RunJob, ComputesWhatThreadsCompute) {
  const ProgramRun threads = run("threads --json"), job = run("job --json");
  ASSERT_EQ(job.exit_code, 0) << job.standard_error;
  const Json expected = Json::parse(threads.standard_output),
             measured = Json::parse(job.standard_output);
  ASSERT_EQ(measured["steps"].size(), 3u);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(measured["steps"][i]["loss"], expected["steps"][i]["loss"]) << "to the last bit";
  EXPECT_EQ(job.standard_error.find("tasks a step"), job.standard_error.rfind("tasks a step"))
      << "one process speaks for all";
}

TEST_F(RunJob, NamesTheRankThatFails) {
  const ProgramRun job = run("job --inject-fault rank=1,task=F0,kind=throw,step=1");
  EXPECT_EQ(job.exit_code,
            run("threads --inject-fault rank=1,task=F0,kind=throw,step=1").exit_code);
  EXPECT_THAT(job.standard_error, HasSubstr("rank 1"));
}

/// Telling every now and then how far it is does not count as moving.
TEST_F(RunJob, NamesTheRankThatHangs) {
  const ProgramRun job = run("job --patience 1s --inject-fault rank=1,task=B0,kind=hang,step=1");
  EXPECT_EQ(job.exit_code, 1);
  EXPECT_THAT(job.standard_error, HasSubstr("error: rank 1, r1.compute.s1.B0: hangs: no rank"));
}

TEST_F(RunJob, NoticesAProcessThatDies) {
  const ProgramRun job = run("job --inject-fault rank=1,task=F0,kind=die,step=1");
  EXPECT_NE(job.exit_code, 0);
  EXPECT_THAT(job.standard_error, HasSubstr("its process is gone"));
}

/// A signal for the process that was started, not for its copies.
TEST_F(RunJob, StopsItsCopiesWhenItIsStopped) {
  for (const int signal : {SIGINT, SIGTERM}) {
    ProgramCall call = call_of("job --steps 3000 -o out.pftrace");
    call.interrupt_after = "step   3";
    call.signal = signal;
    const ProgramRun job = run_program(call);
    EXPECT_EQ(job.exit_code, 130) << job.standard_error;
    EXPECT_THAT(job.standard_output, HasSubstr("interrupted after "));
    const std::string file = (folder_.path() / "out.pftrace").string();
    const Timeline timeline = timeline_from_pftrace(read_file(file), file);
    EXPECT_THAT(check_timeline(timeline), testing::IsEmpty());
  }
}

TEST_F(RunJob, NoticesThatTheProcessWhichWatchesDies) {
  const ProgramRun job = run("job --inject-fault rank=0,task=F0,kind=die,step=1");
  EXPECT_EQ(job.exit_code, 1);
  EXPECT_THAT(job.standard_error, HasSubstr("error: rank 0: was killed by signal 9 (Killed)"));
}

TEST_F(RunJob, NeedsAsManyProcessesAsThePlanHasRanks) {
  setenv("RANK", "0", 1);
  setenv("WORLD_SIZE", "3", 1);
  const ProgramRun job = run("job");
  EXPECT_EQ(job.exit_code, 3);
  EXPECT_THAT(job.standard_error, HasSubstr("3 processes were started for a plan of 2 ranks"));
}

TEST_F(RunJob, NeedsGpusForNccl) {
  const ProgramRun cores = run("nccl");
  EXPECT_EQ(cores.exit_code, 3);
  EXPECT_THAT(cores.standard_error, HasSubstr("NCCL is for ranks with a GPU each"));
  if (cuda_library().missing.empty()) GTEST_SKIP() << "here is a GPU";
  const ProgramRun gpus = run("nccl --device cuda --clock wall");
  EXPECT_EQ(gpus.exit_code, 4);
  EXPECT_THAT(gpus.standard_error, HasSubstr("error: --device cuda: "));
}

}  // namespace
}  // namespace meshwright
