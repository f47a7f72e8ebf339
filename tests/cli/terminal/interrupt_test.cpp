/// Ctrl-C, and limits of the system, as users meet them.
#include <chrono>

#include "tests/cli/program_fixture.hpp"

namespace meshwright {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// What each takes without the interruption is many seconds.
const std::string kLargeJob =
    " --model gpt3-175b --cluster dgx-a100 --gpus 1024 --tp 8 --pp 16 --global-batch 1536 --seq "
    "2048";

class Interruption : public ProgramTest {
 protected:
  ProgramRun interrupted(const std::string& line) const {
    ProgramCall call = call_of(words_of(line));
    call.interrupt = true;
    const auto started = std::chrono::steady_clock::now();
    const ProgramRun run = run_program(call);
    // Of this, 0.3 s pass before the interruption; a busy machine adds to it.
    EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(3)) << line;
    EXPECT_EQ(run.exit_code, 130) << line << run.standard_error;
    return run;
  }
};

TEST_F(Interruption, EndsCommandsAndLeavesNoFile) {
  for (const std::string line : {"simulate - -o step.pftrace", "export - --to chrome -o trace.json",
                                 "explain -", "schedule --check -", "import -", "partition -"}) {
    EXPECT_EQ(interrupted(line).standard_output, "") << line;
    EXPECT_THAT(folder_.file_names(), IsEmpty()) << line;
  }
  const ProgramRun run = interrupted("simulate" + kLargeJob + " --all-ranks -o step.pftrace");
  EXPECT_EQ(run.standard_error, "interrupted: no results written\n");
  EXPECT_THAT(folder_.file_names(), IsEmpty());
}

TEST_F(Interruption, KeepsTheSamplesOfJitter) {
  const ProgramRun run = interrupted(
      "simulate --model gpt2 --cluster dgx-a100 --gpus 8 --pp 4 --global-batch 64 --seq 1024"
      " --jitter 0.05 --draws 100000");
  EXPECT_THAT(run.standard_output, HasSubstr(" samples, seed 1"));
  EXPECT_THAT(run.standard_error, HasSubstr("interrupted after "));
}

TEST_F(Interruption, KeepsThePointsOfASweep) {
  std::string batches = "128";
  for (int batch = 256; batch <= 12'800; batch += 128) batches += "," + std::to_string(batch);
  ProgramCall call =
      call_of(words_of("sweep" + kLargeJob + " --threads 1 --over global-batch=" + batches +
                       " --over micro-batch=1,2 -o sweep.csv"));
  call.interrupt_after_file = "sweep.csv.points";
  const ProgramRun run = run_program(call);
  EXPECT_EQ(run.exit_code, 130) << run.standard_error;
  EXPECT_THAT(run.standard_output, HasSubstr("best that fits in memory"));
  EXPECT_THAT(run.standard_error, testing::ContainsRegex("interrupted: [0-9]+ of 200 combin"));
  EXPECT_THAT(folder_.file_names(), testing::ElementsAre("sweep.csv", "sweep.csv.points"));
}

/// Of the system, set by the shell.
class Limit : public ProgramTest {
 protected:
  ProgramRun limited(const std::string& limit, const std::string& arguments) const {
    ProgramCall call = call_of({"-c", limit + "; exec " MESHWRIGHT_PROGRAM " " + arguments});
    call.program = "/bin/sh";
    return run_program(call);
  }
};

TEST_F(Limit, OfFileSizesIsNoCrash) {
  EXPECT_THAT(limited("ulimit -f 1", "simulate" + kLargeJob + " -o step.pftrace"),
              fails_with(4, "error: step.pftrace: cannot write file: File too large"));
  EXPECT_THAT(folder_.file_names(), IsEmpty());
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they reserve terabytes
TEST_F(Limit, OfMemoryIsForeseen) {
  EXPECT_THAT(limited("ulimit -v 1000000",
                      "run --model gpt2 --cluster cpu-laptop --gpus 2 --pp 2 --dtype fp32 "
                      "--global-batch 2 --seq 64 --steps 1"),
              fails_with(4, "are left of the limit on address space (ulimit -v)"));
}

// Weights and gradients take 1.9 GiB, the optimizer state in host memory the rest.
TEST_F(Limit, CountsOptimizerStateInHostMemory) {
  EXPECT_THAT(limited("ulimit -v 2900000",
                      "run --model gpt2 --cluster dgx-a100 --gpus 2 --dp 2 --zero 1 "
                      "--offload-optimizer --dtype fp32 --micro-batch 1 --global-batch 2 --seq 8 "
                      "--steps 1"),
              fails_with(4, "peak memory of 2 ranks is 2.8 GiB"));
}
#endif

}  // namespace
}  // namespace meshwright
