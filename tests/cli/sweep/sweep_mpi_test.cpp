/// `sweep` under mpirun as a user starts it, with three processes of OpenMPI. Skipped where there
/// is no mpirun, or no MPI in the program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "core/formats/file.hpp"
#include "executor/launch/mpi_job.hpp"
#include "tests/cli/mpirun.hpp"
#include "tests/cli/program_fixture.hpp"

namespace meshwright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kSmallSweep =
    "sweep --cluster dgx-a100 --gpus 8 --seq 1024 --over tp=1,2,5 --over pp=1,2,3,4 --over "
    "global-batch=8,16,32";

/// 36 combinations for each of these batch sizes, a millisecond each: long enough to kill a rank
/// meanwhile. Sanitizers make them much slower.
#ifdef __SANITIZE_ADDRESS__
constexpr int kBatchSizes = 20;
#else
constexpr int kBatchSizes = 50;
#endif
constexpr int kLargeSweep = 36 * kBatchSizes;
std::string large_sweep() {
  std::string batches = "384";
  for (int batch = 768; batch <= 384 * kBatchSizes; batch += 384)
    batches += "," + std::to_string(batch);
  return "sweep --cluster dgx-a100 --gpus 384 --seq 2048 --over tp=4,8 --over pp=4,8,12 --over "
         "schedule=gpipe,1f1b,zb-h1 --over micro-batch=1,2 --over global-batch=" +
         batches;
}

class RunMpiSweep : public ProgramTest {
 protected:
  void SetUp() override {
    mpirun_ = find_mpirun();
    if (mpirun_.empty()) GTEST_SKIP() << "mpirun.openmpi is not on PATH";
    if (!is_built_with_mpi()) GTEST_SKIP() << "the program was built without MPI";
  }
  ProgramRun alone(const std::string& line, const std::string& model = " --model gpt2") const {
    return run(words_of(line + model));
  }
  ProgramRun under_mpirun(const std::string& line,
                          const std::string& model = " --model gpt2") const {
    return run_program(call_under_mpirun(mpirun_, 3, call_of(words_of(line + model))));
  }
  /// Rank 1 gets `model`, and the others gpt2.
  ProgramRun with_other_model(const std::string& model, const std::string& line) const {
    write_file(path("start.sh"),
               "model=gpt2\n"
               "if [ $OMPI_COMM_WORLD_RANK = 1 ]; then model=" +
                   model + "; fi\nexec " MESHWRIGHT_PROGRAM " \"$@\" --model $model\n");
    ProgramCall call = call_of(words_of("start.sh " + line));
    call.program = "/bin/sh";
    return run_program(call_under_mpirun(mpirun_, 3, call));
  }
  std::string mpirun_;
};

TEST_F(RunMpiSweep, GivesTheBytesOfOneProcess) {
  for (const std::string how : {" -o out.csv", " --json", " --format html"}) {
    SCOPED_TRACE(how);
    const ProgramRun one = alone(kSmallSweep + how);
    const std::string file = how == " -o out.csv" ? read_file(path("out.csv")) : "";
    std::filesystem::remove(path("out.csv"));
    const ProgramRun three = under_mpirun(kSmallSweep + how);
    ASSERT_EQ(three.exit_code, 0) << three.standard_error;
    EXPECT_EQ(three.standard_output, one.standard_output);
    EXPECT_EQ(three.standard_error, "");
    if (!file.empty()) {
      EXPECT_EQ(read_file(path("out.csv")), file);
      EXPECT_THAT(file, HasSubstr("\n5,1,8,,,,,,,,\n")) << "a point that cannot be";
    }
  }
}

TEST_F(RunMpiSweep, EvaluatesEveryPointOnceOnSomeRank) {
  const std::string line = large_sweep() + " --threads 1 --points all.points --json";
  ASSERT_EQ(under_mpirun(line, " --model gpt3-175b").exit_code, 0);
  // With one thread, points that one process evaluates are in order; those of several are not.
  const std::string points = read_file(path("all.points"));
  std::vector<int> order;
  for (std::size_t at = points.find("\"point\":"); at != std::string::npos;
       at = points.find("\"point\":", at + 1))
    order.push_back(std::stoi(points.substr(at + 8)));
  EXPECT_EQ(order.size(), static_cast<std::size_t>(kLargeSweep));
  EXPECT_FALSE(std::ranges::is_sorted(order));
  std::ranges::sort(order);
  EXPECT_EQ(std::ranges::adjacent_find(order), order.end()) << "evaluated twice";
}

/// Kills mpirun once 50 points are in the file.
TEST_F(RunMpiSweep, ContinuesAfterAKill) {
  const std::string model = " --model gpt3-175b";
  const ProgramRun one = alone(large_sweep() + " -o out.csv", model);
  const std::string expected = read_file(path("out.csv"));
  std::filesystem::remove(path("out.csv"));
  write_file(path("kill.sh"),
             "\"$@\" >/dev/null & pid=$!\n"
             "for i in $(seq 500); do\n"
             "  [ \"$(cat out.csv.points 2>/dev/null | wc -l)\" -ge 50 ] && break\n"
             "  sleep 0.02\n"
             "done\n"
             "kill -KILL $pid\nwait $pid\n");
  ProgramCall call =
      call_under_mpirun(mpirun_, 3, call_of(words_of(large_sweep() + " -o out.csv" + model)));
  call.arguments.insert(call.arguments.begin(), {"kill.sh", call.program});
  call.program = "/bin/sh";
  ASSERT_EQ(run_program(call).exit_code, 128 + SIGKILL);
  ASSERT_THAT(folder_.file_names(), ElementsAre("kill.sh", "out.csv.points"));

  const ProgramRun again = under_mpirun(large_sweep() + " -o out.csv", model);
  ASSERT_EQ(again.exit_code, 0) << again.standard_error;
  EXPECT_THAT(again.standard_error,
              testing::MatchesRegex("continuing: out.csv.points has [0-9]+ of " +
                                    std::to_string(kLargeSweep) + " combinations\n"));
  EXPECT_EQ(read_file(path("out.csv")), expected);
  EXPECT_EQ(again.standard_output, one.standard_output);
  EXPECT_THAT(folder_.file_names(), ElementsAre("kill.sh", "out.csv"));
}

TEST_F(RunMpiSweep, AKilledRankIsNamed) {
  write_file(path("kill.sh"),
             "\"$@\" & pid=$!\n"
             "for i in $(seq 500); do\n"
             "  [ \"$(cat out.csv.points 2>/dev/null | wc -l)\" -ge 50 ] && break\n"
             "  sleep 0.02\n"
             "done\n"
             "for guard in $(pgrep -P $pid); do\n"
             "  grep -qz '^OMPI_COMM_WORLD_RANK=2$' /proc/$guard/environ && pkill -KILL -P $guard\n"
             "done\n"
             "wait $pid\n");
  ProgramCall call = call_under_mpirun(
      mpirun_, 3, call_of(words_of(large_sweep() + " -o out.csv --model gpt3-175b")));
  call.arguments.insert(call.arguments.begin(), {"kill.sh", call.program});
  call.program = "/bin/sh";
  const ProgramRun run = run_program(call);
  EXPECT_NE(run.exit_code, 0);
  EXPECT_THAT(run.standard_error, HasSubstr("error: rank 2: "));
  EXPECT_THAT(folder_.file_names(), ElementsAre("kill.sh", "out.csv.points"));
}

TEST_F(RunMpiSweep, ReportsAnInvalidOptionOnce) {
  const ProgramRun run = under_mpirun("sweep --cluster dgx-a100 --over tp=1,2", " --model gpt2x");
  EXPECT_THAT(run, fails_with(3, "error: gpt2x: unknown model 'gpt2x'\n"));
  EXPECT_EQ(run.standard_error.find("unknown model"), run.standard_error.rfind("unknown model"));
}

TEST_F(RunMpiSweep, EndsIfOneRankCannotReadItsInput) {
  EXPECT_THAT(with_other_model("none.json", kSmallSweep),
              fails_with(4,
                         "error: mpirun meshwright sweep: rank 1: none.json: cannot open file: No "
                         "such file or directory\n"
                         "  hint: make the input files readable on every node\n"));
}

TEST_F(RunMpiSweep, EndsIfOneRankHasAnotherInput) {
  const ProgramRun run = with_other_model("gpt2-medium", kSmallSweep);
  EXPECT_THAT(run, fails_with(1, "error: rank 1: model configuration: is of hash "));
  EXPECT_EQ(run.standard_output, "");
}

/// Slurm without its MPI plug-in: every process of Open MPI would be alone, and do everything.
TEST_F(RunMpiSweep, NeedsProcessesThatMpiConnects) {
  ProgramCall call = call_of(words_of("SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=4 " MESHWRIGHT_PROGRAM
                                      " sweep --model gpt2 --cluster "
                                      "dgx-a100 --gpus 4 --global-batch 8 --seq 64 --over tp=1,2"));
  call.program = "/usr/bin/env";
  EXPECT_THAT(run_program(call), fails_with(4,
                                            "error: mpirun meshwright sweep: 4 processes were "
                                            "started, but MPI connects only 1 of them\n"));
}

TEST_F(RunMpiSweep, OneProcessNeedsNoMpi) {
  const ProgramRun run = run_program(
      call_under_mpirun(mpirun_, 1, call_of(words_of(std::string(kSmallSweep) + " --model gpt2"))));
  EXPECT_EQ(run.standard_output, alone(kSmallSweep).standard_output);
}

}  // namespace
}  // namespace meshwright
