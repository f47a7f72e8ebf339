/// One folder here for every mistake that a user can make:
///   args     the command line, one argument per line
///   stderr   the full message expected on standard error
///   exit     the exit code expected
///   stdin    optional: standard input
///   stdout   optional: standard output expected (otherwise: nothing)
/// and the files that the command line names. The program runs in a copy of the folder, where
/// nothing may have appeared or gone when it has failed. With MESHWRIGHT_UPDATE_GOLDEN=1 in the
/// environment, stderr and stdout are rewritten; exit codes never are.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "core/formats/file.hpp"
#include "tests/cli/run_program.hpp"

namespace meshwright {
namespace {

namespace fs = std::filesystem;

fs::path errors_folder() { return fs::path(MESHWRIGHT_SOURCE_DIR) / "tests" / "errors"; }

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(errors_folder()))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string content_or_nothing(const fs::path& file) {
  return fs::exists(file) ? read_file(file.string()) : "";
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

bool is_input(const fs::path& file) {
  const std::string name = file.filename().string();
  return name != "args" && name != "stderr" && name != "exit" && name != "stdin" &&
         name != "stdout";
}

void expect_text(const fs::path& file, const std::string& actual) {
  const char* update = std::getenv("MESHWRIGHT_UPDATE_GOLDEN");
  if (update != nullptr && std::string(update) == "1") {
    if (!actual.empty() || fs::exists(file)) write_file(file.string(), actual);
    return;
  }
  EXPECT_EQ(actual, content_or_nothing(file)) << "expected by " << file;
}

class UserError : public testing::TestWithParam<std::string> {};

TEST_P(UserError, IsExplainedAndLeavesNothingBehind) {
  const fs::path source = errors_folder() / GetParam();
  const TemporaryFolder folder;
  for (const auto& entry : fs::directory_iterator(source))
    if (is_input(entry.path())) fs::copy(entry.path(), folder.path() / entry.path().filename());
  const std::vector<std::string> before = folder.file_names();

  // Tests must not depend on a calibration made by the user.
  setenv("MESHWRIGHT_CALIBRATION", "this-machine.calib.json", /*overwrite=*/1);
  const ProgramRun run = run_program({.program = MESHWRIGHT_PROGRAM,
                                      .arguments = lines_of(read_file((source / "args").string())),
                                      .folder = folder.path(),
                                      .standard_input = content_or_nothing(source / "stdin"),
                                      .interrupt = false});

  EXPECT_EQ(run.exit_code, std::stoi(read_file((source / "exit").string())));
  expect_text(source / "stderr", run.standard_error);
  expect_text(source / "stdout", run.standard_output);
  EXPECT_EQ(folder.file_names(), before) << "files appeared or went";
}

std::string test_name(const testing::TestParamInfo<std::string>& folder) {
  std::string name = folder.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Errors, UserError, testing::ValuesIn(case_names()), test_name);

}  // namespace
}  // namespace meshwright
