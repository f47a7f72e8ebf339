/// `run --ranks mpi` as a user starts it, with two processes of OpenMPI. Skipped where there is no
/// mpirun, or no MPI in the program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "core/formats/file.hpp"
#include "core/formats/pftrace.hpp"
#include "tests/cli/run_program.hpp"

namespace meshwright {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> words(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), {}};
}

/// In the folders of PATH; empty: nowhere.
std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (std::filesystem::exists(folder + "/" + name)) return folder + "/" + name;
  return {};
}

class RunMpi : public testing::Test {
 protected:
  void SetUp() override {
    write_file(path("tiny.json"),
               R"({"model_type": "gpt2", "n_embd": 32, "n_layer": 4, "n_head": 4,
                   "n_positions": 64, "vocab_size": 256, "resid_pdrop": 0, "attn_pdrop": 0,
                   "embd_pdrop": 0})");
    mpirun_ = find_program("mpirun.openmpi");
    if (mpirun_.empty()) GTEST_SKIP() << "there is no mpirun.openmpi";
    if (run_program(alone("mpi")).standard_error.find("without MPI") != std::string::npos)
      GTEST_SKIP() << "the program was built without MPI";
    // OpenMPI refuses root, and more processes than cores, unless told twice.
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 1);  // needs rights of ptrace
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  ProgramCall alone(const std::string& kind,
                    const std::string& how = "--pp 2 --global-batch 4 --seq 16") const {
    return {.program = MESHWRIGHT_PROGRAM,
            .arguments =
                words("run --model " + path("tiny.json") +
                      " --cluster cpu-laptop --gpus 2 --dtype fp32 " + how + " --ranks " + kind),
            .folder = folder_.path(),
            .standard_input = ""};
  }
  ProgramCall under_mpirun(const std::string& more, int processes = 2) const {
    return under_mpirun(alone("mpi"), more, processes);
  }
  ProgramCall under_mpirun(const ProgramCall& call, const std::string& more, int processes) const {
    std::vector<std::string> arguments =
        words("--oversubscribe --mca mpi_yield_when_idle 1 -np " + std::to_string(processes));
    arguments.push_back(call.program);
    arguments.insert(arguments.end(), call.arguments.begin(), call.arguments.end());
    const std::vector<std::string> last = words(more);
    arguments.insert(arguments.end(), last.begin(), last.end());
    return {
        .program = mpirun_, .arguments = arguments, .folder = folder_.path(), .standard_input = ""};
  }

  const TemporaryFolder folder_;
  std::string mpirun_;
};

TEST_F(RunMpi, ComputesWhatThreadsCompute) {
  ProgramCall call = alone("threads");
  call.arguments.insert(call.arguments.end(), {"--steps", "3", "--json"});
  const ProgramRun threads = run_program(call);
  const ProgramRun mpi = run_program(under_mpirun("--steps 3 --json -o " + path("out.pftrace")));
  ASSERT_EQ(mpi.exit_code, 0) << mpi.standard_error;
  const Json expected = Json::parse(threads.standard_output),
             measured = Json::parse(mpi.standard_output);
  ASSERT_EQ(measured["steps"].size(), 3u);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(measured["steps"][i]["loss"], expected["steps"][i]["loss"]) << "to the last bit";
  EXPECT_EQ(measured["peak_memory_bytes_per_rank"], expected["peak_memory_bytes_per_rank"]);
  const Timeline timeline = timeline_from_pftrace(read_file(path("out.pftrace")), "out.pftrace");
  EXPECT_THAT(check_timeline(timeline), IsEmpty());
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
  const std::string how = "--dp 2 --global-batch 2 --seq 8 --steps 2 --json";
  const ProgramRun threads = run_program(alone("threads", how));
  const ProgramRun mpi = run_program(under_mpirun(alone("mpi", how), "", 2));
  ASSERT_EQ(threads.exit_code, 0) << threads.standard_error;
  ASSERT_EQ(mpi.exit_code, 0) << mpi.standard_error;
  const Json expected = Json::parse(threads.standard_output),
             measured = Json::parse(mpi.standard_output);
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_EQ(measured["steps"][i]["loss"], expected["steps"][i]["loss"]) << "to the last bit";
  EXPECT_NE(measured["steps"][0]["loss"], measured["steps"][1]["loss"]);
}

TEST_F(RunMpi, TrainsInEveryWayThatRanksMeet) {
  for (const std::string cut :
       {"--tp 2 --sequence-parallel", "--dp 2 --zero 3", "--cp 2 --context-algorithm ring",
        "--cp 2 --context-algorithm all-to-all"}) {
    SCOPED_TRACE(cut);
    const std::string how = cut + " --global-batch 4 --seq 16 --steps 2 --json";
    const ProgramRun threads = run_program(alone("threads", how));
    const ProgramRun mpi = run_program(under_mpirun(alone("mpi", how), "", 2));
    ASSERT_EQ(threads.exit_code, 0) << threads.standard_error;
    ASSERT_EQ(mpi.exit_code, 0) << mpi.standard_error;
    EXPECT_EQ(Json::parse(mpi.standard_output)["steps"][1]["loss"],
              Json::parse(threads.standard_output)["steps"][1]["loss"])
        << "to the last bit";
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
  const ProgramRun run = run_program(under_mpirun("", 3));
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_THAT(run.standard_error,
              HasSubstr("error: --ranks mpi: mpirun started 3 processes, but the plan has 2 ranks\n"
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
    EXPECT_LT(std::chrono::steady_clock::now() - start_, std::chrono::seconds(10));
    EXPECT_FALSE(std::filesystem::exists(path("out.pftrace")));
  }
  ProgramRun run_with(const std::string& fault,
                      const std::string& patience = "--patience 1s") const {
    return run_program(under_mpirun(patience + " -o " + path("out.pftrace") +
                                    " --inject-fault rank=1,task=B1,step=1,kind=" + fault));
  }
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

TEST_F(RunMpiFault, OfARankThatThrowsIsNamed) {
  const ProgramRun run = run_with("throw");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.standard_error, HasSubstr("error: rank 1, r1.compute.s1.B1: injected fault"));
}

TEST_F(RunMpiFault, OfARankThatHangsIsNamed) {
  const ProgramRun run = run_with("hang");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.standard_error, HasSubstr("error: rank 1, r1.compute.s1.B1: hung"));
}

TEST_F(RunMpiFault, OfARankThatHangsIsNamedWithinTenSecondsUnlessAskedOtherwise) {
  const ProgramRun run = run_with("hang", "");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.standard_error, HasSubstr("hung: no rank made progress for 5 s"));
}

TEST_F(RunMpiFault, OfARankThatCrashesIsNamed) {
  const ProgramRun run = run_with("abort");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.standard_error,
              HasSubstr("error: rank 1, r1.compute.s1.B1: crashed with signal 6 (Aborted)"));
}

/// mpirun alone would end the job without naming the task.
TEST_F(RunMpiFault, OfARankThatDiesIsNamed) {
  const ProgramRun run = run_with("die");
  EXPECT_EQ(run.exit_code, 1) << run.standard_error;
  EXPECT_THAT(run.standard_error, HasSubstr("error: rank 1, r1.compute.s1.B1: "));
}

TEST_F(RunMpiFault, OfARankThatEndsWithoutAWordIsNamed) {
  const ProgramRun run = run_with("exit");
  EXPECT_EQ(run.exit_code, 1) << run.standard_error;
  EXPECT_THAT(
      run.standard_error,
      HasSubstr("error: rank 1, r1.compute.s1.B1: its process exited early, with status 0"));
}

TEST_F(RunMpiFault, OfTheRankThatWatchesTheOthersIsNamed) {
  const ProgramRun run =
      run_program(under_mpirun("--patience 1s -o " + path("out.pftrace") +
                               " --inject-fault rank=0,task=B1,step=1,kind=die"));
  EXPECT_EQ(run.exit_code, 1) << run.standard_error;
  EXPECT_THAT(run.standard_error,
              HasSubstr("error: rank 0, r0.compute.s0.B1: was killed by signal 9 (Killed)"));
}

/// Ranks used to train on for seconds after mpirun was killed.
TEST_F(RunMpi, LeavesNobodyWhenMpirunIsKilled) {
  ProgramCall call = under_mpirun("--steps 100000 -o " + path("out.pftrace"));
  call.interrupt_after = "step   3";
  call.signal = SIGKILL;
  EXPECT_EQ(run_program(call).exit_code, 128 + SIGKILL);
  const auto ranks_left = [&] {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream file(entry.path() / "cmdline");
      const std::string line{std::istreambuf_iterator<char>(file), {}};
      count += line.find(folder_.path().string()) != std::string::npos;
    }
    return count;
  };
  for (int i = 0; i < 10 && ranks_left() > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(ranks_left(), 0);
}

TEST_F(RunMpi, CtrlCWritesWhatWasMeasured) {
  ProgramCall call = under_mpirun("--steps 100000 -o " + path("out.pftrace"));
  call.interrupt_after = "step   3";
  const ProgramRun run = run_program(call);
  EXPECT_NE(run.exit_code, 0);
  const Timeline timeline = timeline_from_pftrace(read_file(path("out.pftrace")), "out.pftrace");
  EXPECT_THAT(check_timeline(timeline), IsEmpty());
  EXPECT_THAT(timeline.provenance.at("steps"), HasSubstr("interrupted after "));
}

}  // namespace
}  // namespace meshwright
