/// `run --ranks job` and `--ranks nccl` as a user starts them: with copies of the program, and as
/// processes of a launcher such as torchrun or srun.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "core/formats/file.hpp"
#include "core/formats/pftrace.hpp"
#include "kernels/device/backend_plugin.hpp"
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
  EXPECT_EQ(job.standard_error.find("tasks per step"), job.standard_error.rfind("tasks per step"))
      << "only rank 0 prints";
}

TEST_F(RunJob, NamesTheRankThatFails) {
  const ProgramRun job = run("job --inject-fault rank=1,task=F0,kind=throw,step=1");
  EXPECT_EQ(job.exit_code,
            run("threads --inject-fault rank=1,task=F0,kind=throw,step=1").exit_code);
  EXPECT_THAT(job.standard_error, HasSubstr("rank 1"));
}

/// Heartbeats do not count as progress.
TEST_F(RunJob, NamesTheRankThatHangs) {
  const ProgramRun job = run("job --patience 1s --inject-fault rank=1,task=B0,kind=hang,step=1");
  EXPECT_EQ(job.exit_code, 1);
  EXPECT_THAT(job.standard_error, HasSubstr("error: rank 1, r1.compute.s1.B0: hung: no rank"));
}

TEST_F(RunJob, NoticesAProcessThatDies) {
  const ProgramRun job = run("job --inject-fault rank=1,task=F0,kind=die,step=1");
  EXPECT_NE(job.exit_code, 0);
  EXPECT_THAT(job.standard_error,
              HasSubstr("its process was killed or exited without reporting a status"));
}

/// The signal is sent to the launcher only.
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

/// A port that is free now.
std::uint16_t free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ::bind(fd, reinterpret_cast<sockaddr*>(&address), size);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(fd);
  return ntohs(address.sin_port);
}

class RunUnderALauncher : public RunJob {
 protected:
  /// Starts one process per rank, as torchrun and srun do; results by rank.
  std::array<ProgramRun, 2> run_all(const std::string& more) const {
    const std::uint16_t port = free_port();
    std::array<ProgramRun, 2> runs;
    std::vector<std::thread> launcher;
    for (std::size_t rank = 0; rank < runs.size(); ++rank)
      launcher.emplace_back([&, rank] {
        ProgramCall call = call_of("job --steps 3 " + more);
        call.arguments.insert(
            call.arguments.begin(),
            {"RANK=" + std::to_string(rank), "WORLD_SIZE=" + std::to_string(runs.size()),
             "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + std::to_string(port), call.program});
        call.program = "/usr/bin/env";
        runs[rank] = run_program(call);
      });
    for (std::thread& thread : launcher) thread.join();
    return runs;
  }
};

TEST_F(RunUnderALauncher, SucceedsOnAllProcesses) {
  const auto runs = run_all("");
  EXPECT_EQ(runs[0].exit_code, 0) << runs[0].standard_error;
  EXPECT_EQ(runs[1].exit_code, 0) << runs[1].standard_error;
  EXPECT_EQ(runs[1].standard_error, "");
}

TEST_F(RunUnderALauncher, FailsOnAllProcessesWhenARankFails) {
  const auto runs = run_all("--inject-fault rank=1,task=F0,kind=throw,step=1");
  for (const ProgramRun& run : runs) {
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_THAT(run.standard_error, HasSubstr("error: rank 1, r1.compute.s1.F0: injected fault"));
  }
}

TEST_F(RunUnderALauncher, FailsOnAllProcessesWhenRankZeroFails) {
  const auto runs = run_all("--inject-fault rank=0,task=F0,kind=throw,step=1 --json");
  EXPECT_EQ(runs[0].exit_code, 1);
  EXPECT_THAT(runs[0].standard_error, HasSubstr("error: rank 0, r0.compute.s0.F0: injected fault"));
  EXPECT_EQ(runs[1].exit_code, 1);
  EXPECT_THAT(runs[1].standard_error,
              HasSubstr("error: rank 1: stopped because rank 0 failed in r0.compute.s0.F0: "
                        "injected fault\n"));
  EXPECT_EQ(runs[1].standard_output, "") << "one process prints results";
}

TEST_F(RunUnderALauncher, FailsOnAllProcessesWhenARankHangs) {
  const auto runs = run_all("--patience 1s --inject-fault rank=1,task=B0,kind=hang,step=1");
  for (const ProgramRun& run : runs) {
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_THAT(run.standard_error, HasSubstr("error: rank 1, r1.compute.s1.B0: hung: no rank"));
  }
}

/// Rank 0 supervises the others; they have to notice its death by themselves.
TEST_F(RunUnderALauncher, FailsOnTheOthersWhenTheProcessOfRankZeroDies) {
  const auto runs = run_all("--inject-fault rank=0,task=F0,kind=die,step=1");
  EXPECT_EQ(runs[0].exit_code, 128 + SIGKILL);
  EXPECT_EQ(runs[1].exit_code, 1);
  EXPECT_THAT(runs[1].standard_error,
              HasSubstr("error: rank 1: stopped because rank 0 failed: its process was killed or "
                        "exited without reporting a status\n"));
}

TEST_F(RunJob, NeedsAsManyProcessesAsThePlanHasRanks) {
  setenv("RANK", "0", 1);
  setenv("WORLD_SIZE", "3", 1);
  const ProgramRun job = run("job");
  EXPECT_EQ(job.exit_code, 3);
  EXPECT_THAT(job.standard_error, HasSubstr("started 3 processes, but the plan has 2 ranks"));
}

TEST_F(RunJob, NeedsGpusForNccl) {
  const ProgramRun cores = run("nccl");
  EXPECT_EQ(cores.exit_code, 3);
  EXPECT_THAT(cores.standard_error, HasSubstr("'--ranks nccl' requires '--device cuda'"));
  if (backend_plugin(Backend::kCuda).missing.empty()) GTEST_SKIP() << "here is a GPU";
  const ProgramRun gpus = run("nccl --device cuda --clock wall");
  EXPECT_EQ(gpus.exit_code, 4);
  EXPECT_THAT(gpus.standard_error, HasSubstr("error: --device cuda: "));
}

}  // namespace
}  // namespace meshwright
