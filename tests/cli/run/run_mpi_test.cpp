/// `run --ranks mpi` as a user starts it, with two processes of OpenMPI. Skipped where there is no
/// mpirun, or no MPI in the program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/cli/mpirun.hpp"
#include "tests/cli/run/tiny_run.hpp"

namespace meshwright {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

class RunMpi : public TinyRun {
 protected:
  void SetUp() override {
    mpirun_ = find_mpirun();
    if (mpirun_.empty()) GTEST_SKIP() << "mpirun.openmpi is not on PATH";
    if (run_program(alone("mpi")).standard_error.find("without MPI") != std::string::npos)
      GTEST_SKIP() << "the program was built without MPI";
  }
  ProgramCall alone(const std::string& kind, const std::string& how = kTwoStages) const {
    return call_of(how + " --ranks " + kind);
  }
  ProgramCall under_mpirun(const std::string& more, int processes = 2) const {
    return under_mpirun(alone("mpi"), more, processes);
  }
  ProgramCall under_mpirun(const ProgramCall& call, const std::string& more, int processes) const {
    return call_under_mpirun(mpirun_, processes, call, words_of(more));
  }
  /// Losses of the steps, which threads compute to the last bit.
  std::vector<double> losses_with_mpi(const std::string& how) const {
    const std::vector<double> losses =
        losses_of(run_program(under_mpirun(alone("mpi", how), "", 2)));
    EXPECT_EQ(losses, losses_of(run_program(alone("threads", how))));
    return losses;
  }

  std::string mpirun_;
};

TEST_F(RunMpi, ComputesWhatThreadsCompute) {
  ProgramCall call = alone("threads");
  call.arguments.insert(call.arguments.end(), {"--steps", "3", "--json"});
  const ProgramRun threads = run_program(call);
  const ProgramRun mpi = run_program(under_mpirun("--steps 3 --json -o " + path("out.pftrace")));
  ASSERT_EQ(mpi.exit_code, 0) << mpi.standard_error;
  const std::vector<double> losses = losses_of(mpi);
  EXPECT_EQ(losses.size(), 3u);
  EXPECT_EQ(losses, losses_of(threads)) << "to the last bit";
  EXPECT_EQ(Json::parse(mpi.standard_output)["peak_memory_bytes_per_rank"],
            Json::parse(threads.standard_output)["peak_memory_bytes_per_rank"]);
  written_timeline();
  EXPECT_EQ(mpi.standard_error.find("tasks per step"), mpi.standard_error.rfind("tasks per step"))
      << "only rank 0 prints";
}

// 16.6 million parameters (words 20,000 x 512, positions, two blocks of 12 x 512^2 and biases): one
// all-reduce of 66 MB.
TEST_F(RunMpi, AllReducesGradientsOfMoreThan64Megabytes) {
  write_file(path("tiny.json"),
             R"({"model_type": "gpt2", "n_embd": 512, "n_layer": 2, "n_head": 4,
                 "n_positions": 64, "vocab_size": 20000, "resid_pdrop": 0, "attn_pdrop": 0,
                 "embd_pdrop": 0})");
  const std::vector<double> losses =
      losses_with_mpi("--gpus 2 --dp 2 --global-batch 2 --seq 8 --steps 2 --json");
  ASSERT_EQ(losses.size(), 2u);
  EXPECT_NE(losses[0], losses[1]);
}

TEST_F(RunMpi, TrainsInEveryWayThatRanksMeet) {
  for (const std::string cut :
       {"--tp 2 --sequence-parallel", "--dp 2 --zero 3", "--cp 2 --context-algorithm ring",
        "--cp 2 --context-algorithm all-to-all"}) {
    SCOPED_TRACE(cut);
    EXPECT_EQ(
        losses_with_mpi("--gpus 2 " + cut + " --global-batch 4 --seq 16 --steps 2 --json").size(),
        2u);
  }
}

TEST_F(RunMpi, NeedsMpirun) {
  const ProgramRun run = run_program(alone("mpi"));
  EXPECT_EQ(run.exit_code, 4);
  EXPECT_EQ(run.standard_error,
            "error: --ranks mpi: not started by mpirun\n"
            "  hint: run mpirun -np 2 meshwright run best.plan.json --ranks mpi\n");
}

TEST_F(RunMpi, NeedsAsManyProcessesAsThePlanHasRanks) {
  EXPECT_THAT(
      run_program(under_mpirun("", 3)),
      fails_with(3,
                 "error: --ranks mpi: mpirun started 3 processes, but the plan has 2 ranks\n"
                 "  hint: use mpirun -np 2\n"));
}

TEST_F(RunMpi, GoesOnWhenALookAtItCannotBeWritten) {
  const ProgramRun run = run_program(under_mpirun("--steps 3 --live -o /dev/full"));
  EXPECT_EQ(run.exit_code, 4) << run.standard_error;
  EXPECT_THAT(run.standard_error, HasSubstr("step   2"));
  EXPECT_THAT(run.standard_error, HasSubstr("error: /dev/full: cannot write file: No space"));
}

class RunMpiFault : public RunMpi {
 protected:
  void TearDown() override {
    EXPECT_LT(std::chrono::steady_clock::now() - start_, longest_);
    EXPECT_FALSE(std::filesystem::exists(path("out.pftrace")));
  }
  ProgramRun run_with(const std::string& fault,
                      const std::string& patience = "--patience 1s") const {
    return run_program(under_mpirun(patience + " -o " + path("out.pftrace") +
                                    " --inject-fault rank=1,task=B1,step=1,kind=" + fault));
  }
  std::chrono::steady_clock::duration longest_ = std::chrono::seconds(10);
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

TEST_F(RunMpiFault, OfARankThatThrowsIsNamed) {
  EXPECT_THAT(run_with("throw"), fails_with(1, "error: rank 1, r1.compute.s1.B1: injected fault"));
}

TEST_F(RunMpiFault, OfARankThatHangsIsNamed) {
  EXPECT_THAT(run_with("hang"), fails_with(1, "error: rank 1, r1.compute.s1.B1: hung"));
}

/// The time that MPI takes to start and end a job comes on top: that of a job whose rank throws.
TEST_F(RunMpiFault, OfARankThatHangsIsNamedWithinTenSecondsUnlessAskedOtherwise) {
  EXPECT_THAT(run_with("throw"), fails_with(1, "injected fault"));
  const auto threw = std::chrono::steady_clock::now();
  longest_ += threw - start_;
  start_ = threw;
  EXPECT_THAT(run_with("hang", ""), fails_with(1, "hung: no rank made progress for 5 s"));
}

TEST_F(RunMpiFault, OfARankThatCrashesIsNamed) {
  EXPECT_THAT(run_with("abort"),
              fails_with(1, "error: rank 1, r1.compute.s1.B1: crashed with signal 6 (Aborted)"));
}

/// mpirun alone would end the job without naming the task.
TEST_F(RunMpiFault, OfARankThatDiesIsNamed) {
  EXPECT_THAT(run_with("die"), fails_with(1, "error: rank 1, r1.compute.s1.B1: "));
}

TEST_F(RunMpiFault, OfARankThatEndsWithoutAWordIsNamed) {
  EXPECT_THAT(
      run_with("exit"),
      fails_with(1, "error: rank 1, r1.compute.s1.B1: its process exited early, with status 0"));
}

TEST_F(RunMpiFault, OfTheRankThatWatchesTheOthersIsNamed) {
  EXPECT_THAT(run_program(under_mpirun("--patience 1s -o " + path("out.pftrace") +
                                       " --inject-fault rank=0,task=B1,step=1,kind=die")),
              fails_with(1, "error: rank 0, r0.compute.s0.B1: was killed by signal 9 (Killed)"));
}

/// Ranks used to train on for seconds after mpirun was killed.
TEST_F(RunMpi, LeavesNobodyWhenMpirunIsKilled) {
  const ProgramCall call = under_mpirun("--steps 100000 -o " + path("out.pftrace"));
  EXPECT_EQ(run_and_signal(call, SIGKILL).exit_code, 128 + SIGKILL);
  for (int i = 0; i < 10 && !processes_left().empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_THAT(processes_left(), testing::IsEmpty());
}

TEST_F(RunMpi, CtrlCWritesWhatWasMeasured) {
  const ProgramCall call = under_mpirun("--steps 100000 -o " + path("out.pftrace"));
  EXPECT_NE(run_and_signal(call, SIGINT).exit_code, 0);
  EXPECT_THAT(written_timeline().provenance.at("steps"), HasSubstr("interrupted after "));
}

}  // namespace
}  // namespace meshwright
