/// `run --ranks job` and `--ranks nccl` as a user starts them: with copies of the program, and as
/// processes of a launcher such as torchrun or srun.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <thread>

#include "core/base/number_from_text.hpp"
#include "executor/launch/run_copies.hpp"
#include "kernels/device/backend_plugin.hpp"
#include "tests/cli/run/tiny_run.hpp"

namespace meshwright {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

class RunJob : public TinyRun {
 protected:
  void TearDown() override {
    for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_PORT"}) unsetenv(name);
  }
  ProgramRun run(const std::string& more) const {
    return run_program(call_of(more + " --steps 3"));
  }
  ProgramCall call_of(const std::string& more) const {
    return TinyRun::call_of(std::string(kTwoStages) + " --ranks " + more);
  }
};

TEST_F(RunJob, ComputesWhatThreadsCompute) {
  const ProgramRun job = run("job --json");
  const std::vector<double> losses = losses_of(job);
  EXPECT_EQ(losses.size(), 3u);
  EXPECT_EQ(losses, losses_of(run("threads --json"))) << "to the last bit";
  EXPECT_EQ(job.standard_error.find("tasks per step"), job.standard_error.rfind("tasks per step"))
      << "only rank 0 prints";
}

TEST_F(RunJob, NamesTheRankThatFails) {
  const std::string fault = " --inject-fault rank=1,task=F0,kind=throw,step=1";
  EXPECT_THAT(run("job" + fault), fails_with(run("threads" + fault).exit_code, "rank 1"));
}

/// Heartbeats do not count as progress.
TEST_F(RunJob, NamesTheRankThatHangs) {
  EXPECT_THAT(run("job --patience 1s --inject-fault rank=1,task=B0,kind=hang,step=1"),
              fails_with(1, "error: rank 1, r1.compute.s1.B0: hung: no rank"));
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
    const ProgramRun job = run_and_signal(call_of("job --steps 3000 -o out.pftrace"), signal);
    EXPECT_EQ(job.exit_code, 130) << job.standard_error;
    EXPECT_THAT(job.standard_output, HasSubstr("interrupted after "));
    written_timeline();
  }
}

TEST_F(RunJob, NoticesThatTheProcessWhichWatchesDies) {
  EXPECT_THAT(run("job --inject-fault rank=0,task=F0,kind=die,step=1"),
              fails_with(1, "error: rank 0: was killed by signal 9 (Killed)"));
}

/// Signals the copy of rank 1 while the program runs.
class RunWithASignalledCopy : public RunJob {
 protected:
  /// Sends `signal` as soon as the copy exists and `is_time`.
  ProgramRun run_and_signal_copy(const std::string& more, int signal,
                                 const std::function<bool()>& is_time) const {
    std::atomic<bool> is_over = false;
    std::thread sender([&] {
      while (!is_over) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        const std::optional<pid_t> copy = copy_of_rank_1();
        if (!copy || !is_time()) continue;
        ::kill(*copy, signal);
        return;
      }
    });
    const ProgramRun done = run_program(call_of(more));
    is_over = true;
    sender.join();
    return done;
  }

 private:
  static std::string content(const std::filesystem::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::optional<pid_t> copy_of_rank_1() const {
    std::error_code gone;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
      const auto pid = number_from_text<pid_t>(entry.path().filename().string());
      if (!pid || content(entry.path() / "cmdline").find(folder_.path()) == std::string::npos)
        continue;
      // The null character in front: not LOCAL_RANK.
      const std::string environment = std::string(1, '\0') + content(entry.path() / "environ");
      if (environment.find(std::string("\0RANK=1\0", 8)) != std::string::npos) return pid;
    }
    return std::nullopt;
  }
};

TEST_F(RunWithASignalledCopy, NamesTheOneKilledBeforeTheyAreConnected) {
  EXPECT_THAT(run_and_signal_copy("job --steps 100000 --patience 1s", SIGKILL, [] { return true; }),
              fails_with(1, "rank 1"));
  EXPECT_THAT(processes_left(), IsEmpty());
}

TEST_F(RunWithASignalledCopy, EndsWithoutTheOneThatIsSuspended) {
  const auto has_trained = [this] {
    std::error_code missing;
    return std::filesystem::file_size(path("log.jsonl"), missing) > 0 && !missing;
  };
  EXPECT_THAT(run_and_signal_copy("job --steps 100000 --patience 1s --log " + path("log.jsonl"),
                                  SIGSTOP, has_trained),
              fails_with(1, "rank 1"));
  EXPECT_THAT(processes_left(), IsEmpty());
}

// Where it is noticed depends on how many descriptors the test has.
TEST_F(RunJob, SaysThatNoDescriptorIsLeft) {
  for (const char* limit : {"5", "6"}) {
    ProgramCall call = call_of("job --steps 3");
    call.arguments.insert(
        call.arguments.begin(),
        {"-c", std::string("ulimit -n ") + limit + "; exec \"$0\" \"$@\"", call.program});
    call.program = "/bin/sh";
    EXPECT_THAT(run_program(call), fails_with(4, "oo many open files")) << limit;
  }
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
  EXPECT_THAT(run_all("--inject-fault rank=1,task=F0,kind=throw,step=1"),
              Each(fails_with(1, "error: rank 1, r1.compute.s1.F0: injected fault")));
}

TEST_F(RunUnderALauncher, FailsOnAllProcessesWhenRankZeroFails) {
  const auto runs = run_all("--inject-fault rank=0,task=F0,kind=throw,step=1 --json");
  EXPECT_THAT(runs[0], fails_with(1, "error: rank 0, r0.compute.s0.F0: injected fault"));
  EXPECT_THAT(runs[1], fails_with(1,
                                  "error: rank 1: stopped because rank 0 failed in "
                                  "r0.compute.s0.F0: injected fault\n"));
  EXPECT_EQ(runs[1].standard_output, "") << "one process prints results";
}

TEST_F(RunUnderALauncher, FailsOnAllProcessesWhenARankHangs) {
  EXPECT_THAT(run_all("--patience 1s --inject-fault rank=1,task=B0,kind=hang,step=1"),
              Each(fails_with(1, "error: rank 1, r1.compute.s1.B0: hung: no rank")));
}

/// Rank 0 supervises the others; they have to notice its death by themselves.
TEST_F(RunUnderALauncher, FailsOnTheOthersWhenTheProcessOfRankZeroDies) {
  const auto runs = run_all("--inject-fault rank=0,task=F0,kind=die,step=1");
  EXPECT_EQ(runs[0].exit_code, 128 + SIGKILL);
  EXPECT_THAT(runs[1], fails_with(1,
                                  "error: rank 1: stopped because rank 0 failed: its process was "
                                  "killed or exited without reporting a status\n"));
}

TEST_F(RunJob, NeedsAsManyProcessesAsThePlanHasRanks) {
  setenv("RANK", "0", 1);
  setenv("WORLD_SIZE", "3", 1);
  EXPECT_THAT(run("job"), fails_with(3, "started 3 processes, but the plan has 2 ranks"));
}

TEST_F(RunJob, NeedsGpusForNccl) {
  EXPECT_THAT(run("nccl"), fails_with(3, "'--ranks nccl' requires '--device cuda'"));
  if (backend_plugin(Backend::kCuda).missing.empty()) GTEST_SKIP() << "here is a GPU";
  EXPECT_THAT(run("nccl --device cuda --clock wall"), fails_with(4, "error: --device cuda: "));
}

}  // namespace
}  // namespace meshwright
