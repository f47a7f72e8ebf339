/// The completion scripts of the program, run by the shells themselves.
#include "cli/manual/shell_completion.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "core/formats/file.hpp"
#include "tests/cli/run_program.hpp"

namespace meshwright {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr const char* kBash = "/bin/bash";
constexpr const char* kZsh = "/usr/bin/zsh";

ProgramRun completion(const std::string& shell) {
  return run_program({.program = MESHWRIGHT_PROGRAM, .arguments = {"completion", shell}});
}

class BashCompletion : public testing::Test {
 protected:
  void SetUp() override {
    write_file((folder_.path() / "script").string(), completion("bash").standard_output);
    write_file((folder_.path() / "best.plan.json").string(), "{}");
  }

  /// What Tab offers after these words; the last one is being typed.
  std::vector<std::string> offered(const std::vector<std::string>& words) const {
    std::string line;
    for (const std::string& word : words) line += " '" + word + "'";
    const ProgramRun run =
        run_program({.program = kBash,
                     .arguments = {"--norc", "-c",
                                   "source ./script\nCOMP_WORDS=(meshwright" + line +
                                       ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_meshwright\n"
                                       "printf '%s\\n' \"${COMPREPLY[@]}\""},
                     .folder = folder_.path()});
    EXPECT_EQ(run.standard_error, "");
    std::vector<std::string> all;
    std::istringstream lines(run.standard_output);
    for (std::string one; std::getline(lines, one);)
      if (!one.empty()) all.push_back(one);
    std::sort(all.begin(), all.end());
    return all;
  }

  const TemporaryFolder folder_;
};

TEST_F(BashCompletion, OffersCommandsFirst) {
  EXPECT_THAT(offered({"pl"}), ElementsAre("plan"));
  EXPECT_THAT(offered({""}), AllOf(Contains("simulate"), Not(Contains("man-pages"))));
  EXPECT_THAT(offered({"--ver"}), ElementsAre("--version"));
}

TEST_F(BashCompletion, OffersTheOptionsOfTheCommand) {
  EXPECT_THAT(offered({"plan", "--micro"}), ElementsAre("--micro-batch"));
  EXPECT_THAT(offered({"plan", "--json", "--micro"}), ElementsAre("--micro-batch"));
  EXPECT_THAT(offered({"schedule", "--micro"}), ElementsAre("--microbatches"));
}

TEST_F(BashCompletion, OffersTheValuesOfAnOption) {
  EXPECT_THAT(offered({"plan", "--model", "gpt3"}), ElementsAre("gpt3-175b"));
  EXPECT_THAT(offered({"plan", "--model", "="}), Contains("gpt3-175b"));
  EXPECT_THAT(offered({"plan", "--model", "=", "gpt3"}), ElementsAre("gpt3-175b"));
  EXPECT_THAT(offered({"plan", "--dtype", "bf"}), ElementsAre("bf16"));
  EXPECT_THAT(offered({"plan", "--recompute", ""}), Contains("block:"));
  EXPECT_THAT(offered({"sweep", "--over", "global"}), ElementsAre("global-batch="));
  EXPECT_THAT(offered({"plan", "--gpus", ""}), ElementsAre("auto"));
  EXPECT_THAT(offered({"plan", "--dp", ""}), IsEmpty());
}

TEST_F(BashCompletion, OffersFilesWhereOneIsExpected) {
  EXPECT_THAT(offered({"simulate", "best"}), ElementsAre("best.plan.json"));
  EXPECT_THAT(offered({"plan", "-o", "best"}), ElementsAre("best.plan.json"));
  EXPECT_THAT(offered({"show", "be"}),
              AllOf(Contains("best.plan.json"), Contains("bert-base"), Each(StartsWith("be"))));
}

TEST(ZshCompletion, IsAValidScript) {
  const ProgramRun script = completion("zsh");
  EXPECT_EQ(script.exit_code, 0);
  EXPECT_THAT(script.standard_output, StartsWith("#compdef meshwright\n"));
  EXPECT_THAT(script.standard_output, HasSubstr("--micro-batch=["));
  if (!std::filesystem::exists(kZsh)) return;  // zsh itself checks it where it is installed
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "_meshwright").string();
  write_file(file, script.standard_output);
  const ProgramRun check = run_program({.program = kZsh, .arguments = {"-n", file}});
  EXPECT_EQ(check.exit_code, 0) << check.standard_error;
}

TEST(ZshCompletion, EscapesWhatArgumentsWouldInterpret) {
  const OptionDescription option{.flags = {"-x", "--x"},
                                 .positional = {},
                                 .value = "{a,b:N}",
                                 .choices = {"a", "b:"},
                                 .description = "what [it] isn't",
                                 .group = {},
                                 .needed_flags = {}};
  const CommandDescription command{.name = "do",
                                   .description = "Note: do",
                                   .footer = {},
                                   .options = {option},
                                   .positionals = {},
                                   .commands = {}};
  const std::string script = zsh_completion({.name = "prog",
                                             .description = {},
                                             .footer = {},
                                             .options = {},
                                             .positionals = {},
                                             .commands = {command}});
  EXPECT_THAT(script, HasSubstr("'do:Note\\: do'"));
  EXPECT_THAT(script, HasSubstr("'(-x --x)--x=[what \\[it\\] isn'\\''t]:x: _prog_values a b\\:'"));
  EXPECT_THAT(script, HasSubstr("'(-x --x)-x+["));
}

TEST(CompletionCommand, RejectsOtherShells) {
  const ProgramRun run = completion("fish");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.standard_error,
            "error: SHELL: invalid value 'fish'\n  hint: expected one of: bash, zsh\n");
}

}  // namespace
}  // namespace meshwright
