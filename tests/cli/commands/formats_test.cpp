/// --format of the commands that print tables.
#include <sstream>

#include "tests/cli/program_fixture.hpp"

namespace meshwright {
namespace {

using testing::Field;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class Formats : public ProgramTest {
 protected:
  ProgramRun run_line(const std::string& line) const { return run(words_of(line)); }
  std::string output_of(const std::string& line) const {
    const ProgramRun result = run_line(line);
    EXPECT_LE(result.exit_code, 1) << line << "\n" << result.standard_error;
    return result.standard_output;
  }
};

/// Commands with tables, each on a job that takes no time.
const std::vector<std::string> kLines{
    "plan --model gpt2 --cluster dgx-a100 --gpus 8 --global-batch 64 --seq 1024 --tp 1 --top 2",
    "plan --model gpt2 --cluster dgx-a100 --gpus 4,8 --global-batch 64 --seq 1024 --tp 1",
    "simulate --model gpt2 --cluster dgx-a100 --gpus 8 --pp 2 --global-batch 64 --seq 1024",
    "explain --model gpt2 --cluster dgx-a100 --gpus 8 --pp 2 --global-batch 64 --seq 1024",
    "sweep --model gpt2 --cluster dgx-a100 --gpus 8 --global-batch 64 --seq 1024 --over tp=1,2",
    "schedule --name 1f1b --stages 2 --microbatches 4",
    "fit --model gpt2 --cluster dgx-a100 --gpus 1 --global-batch 8 --seq 1024",
    "validate korthikanti-2022#P1605",
    "show models",
    "show gpt2",
    "show dgx-h100",
    "show h100-sxm5-80gb",
    "show 1f1b",
};

/// The number of cells of a line of CSV.
int cell_count(const std::string& line) {
  int count = 1;
  bool is_quoted = false;
  for (const char c : line) {
    if (c == '"') is_quoted = !is_quoted;
    if (c == ',' && !is_quoted) ++count;
  }
  return count;
}

// Each table has lines of equally many cells.
void expect_csv(const std::string& text) {
  std::istringstream lines(text);
  int cells = 0;
  for (std::string line; std::getline(lines, line);) {
    ASSERT_TRUE(line.ends_with('\r')) << line;
    line.pop_back();
    if (line.empty()) {
      cells = 0;
      continue;
    }
    if (cells == 0) cells = cell_count(line);
    EXPECT_EQ(cell_count(line), cells) << line;
  }
  EXPECT_GT(cells, 0);
}

/// Pipes that separate cells.
std::int64_t pipe_count(const std::string& line) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < line.size(); ++i)
    if (line[i] == '|' && (i == 0 || line[i - 1] != '\\')) ++count;
  return count;
}

// Every table has a rule after its titles, and lines of equally many cells.
void expect_markdown(const std::string& text) {
  std::istringstream lines(text);
  std::int64_t pipes = 0;
  int row = 0, tables = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('|')) {
      row = 0;
      continue;
    }
    if (row == 0) pipes = pipe_count(line);
    EXPECT_EQ(pipe_count(line), pipes) << line;
    if (row == 1) {
      EXPECT_EQ(line.find_first_not_of("|-:"), std::string::npos) << line;
      ++tables;
    }
    ++row;
  }
  EXPECT_GT(tables, 0) << text;
}

TEST_F(Formats, AreAcceptedByEveryCommandWithTables) {
  for (const std::string& line : kLines) {
    SCOPED_TRACE(line);
    expect_csv(output_of(line + " --format csv"));
    expect_markdown(output_of(line + " --format markdown"));
    const std::string page = output_of(line + " --format html");
    EXPECT_THAT(page, StartsWith("<!DOCTYPE html>\n"));
    EXPECT_THAT(page, HasSubstr("<table>"));
    EXPECT_THAT(page, Not(HasSubstr("src=")));
  }
}

TEST_F(Formats, TextAndJsonAreThoseWithoutTheOption) {
  // Searches and fits print how long they took.
  for (const std::string& line : kLines) {
    if (line.starts_with("plan")) continue;
    SCOPED_TRACE(line);
    EXPECT_EQ(output_of(line + " --format text"), output_of(line));
    EXPECT_EQ(output_of(line + " --format json"), output_of(line + " --json"));
  }
}

// 2 stages, 4 micro-batches, tF = tB = tW = 1: the first stage waits once for a forward and a
// backward pass (1 + 2), so that the makespan is 4 x 3 + 3 = 15, and its bubble rate 1 - 12 / 15.
TEST_F(Formats, ScheduleHasTablesOfItsTimingAndOrders) {
  EXPECT_THAT(output_of("schedule --name 1f1b --stages 2 --microbatches 4 --format csv"),
              StartsWith("figure,time [ms],bubble rate,lower bound [ms],proved optimal\r\n"
                         "makespan,15,20.00 %,"));
  EXPECT_THAT(output_of("schedule --name 1f1b --stages 2 --microbatches 4 --format csv"),
              HasSubstr("\r\n\r\ndevice,peak micro-batches,order\r\n"
                        "0,2,0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3\r\n"
                        "1,1,1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3\r\n"));
}

TEST_F(Formats, FitHasATableOfChanges) {
  const ProgramRun no =
      run_line("fit --model llama-3.1-8b --cluster dgx-h100 --gpus 1 --format csv");
  EXPECT_EQ(no.exit_code, 1);
  EXPECT_THAT(no.standard_output, StartsWith("job,fits,plan,peak memory,of,step\r\n"
                                             "as given,no,-,-,-,-\r\n"
                                             "--gpus 2,yes,\"TP2 SP, "));
  EXPECT_THAT(no.standard_error, StartsWith("No: llama-3.1-8b on 1 GPU of dgx-h100"));
}

TEST_F(Formats, GoToTheFileOfOutput) {
  EXPECT_EQ(output_of("show schedules --format markdown -o schedules.md"), "");
  EXPECT_THAT(output_of("show schedules --format markdown"),
              StartsWith("| schedule | description | source |\n|---|---|---|\n"));
}

TEST_F(Formats, UnknownOneSuggestsTheNearest) {
  EXPECT_THAT(run_line("show models --format markdwon"),
              fails_with(2,
                         "error: --format: invalid value 'markdwon'\n"
                         "  hint: did you mean 'markdown'?"));
  EXPECT_THAT(run_line("show models --json --format csv"),
              fails_with(2, "--json: cannot be combined with '--format'"));
  EXPECT_THAT(run_line("explain --model gpt2 --cluster dgx-a100 --gpus 8 --global-batch 64 --seq "
                       "1024 --launch megatron --format csv"),
              fails_with(2, "--format: cannot be combined with '--launch'"));
}

TEST_F(Formats, JsonAlsoDescribesErrors) {
  for (const char* format : {"--format json", "--format=json"})
    EXPECT_THAT(run_line(std::string("show nothing-of-this-name ") + format),
                Field(&ProgramRun::standard_output, StartsWith("{\"schema\":1,\"error\":")));
}

}  // namespace
}  // namespace meshwright
