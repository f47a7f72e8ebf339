#include "cli/manual/command_description.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "cli/commands/commands.hpp"
#include "cli/manual/known_names.hpp"

namespace meshwright {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

class Described : public testing::Test {
 protected:
  OptionDescription option(const std::string& type) {
    return describe(
        *app_.add_option("--option" + std::to_string(++count_), text_)->type_name(type));
  }

  CLI::App app_{"Does it", "program"};
  std::string text_;
  int number_ = 0, count_ = 0;
  bool is_set_ = false;
};

TEST_F(Described, ChoicesAreTheLowerCaseValuesOfTheTypeName) {
  EXPECT_THAT(option("{bf16,fp8}").choices, ElementsAre("bf16", "fp8"));
  EXPECT_THAT(option("makespan|period").choices, ElementsAre("makespan", "period"));
  EXPECT_THAT(option("{none,block:N,SIZE}").choices, ElementsAre("none", "block:"));
  for (const char* type : {"N", "N,N,...", "FLAG=V,V", "RANK:FACTOR", "TIME"}) {
    SCOPED_TRACE(type);
    EXPECT_THAT(option(type).choices, IsEmpty());
    EXPECT_EQ(option(type).value, type);
    EXPECT_FALSE(option(type).takes_file);
  }
}

TEST_F(Described, FilesAreNamedInTheTypeName) {
  EXPECT_TRUE(option("FILE").takes_file);
  EXPECT_TRUE(option("PATH").takes_file);
  EXPECT_TRUE(option("NAME|FILE").takes_file);
  EXPECT_THAT(option("NAME|FILE").choices, IsEmpty());
}

// CLI11 appends the text of a validator to the type name.
TEST_F(Described, ValidatorsAreNotPartOfTheValue) {
  const OptionDescription word = describe(
      *app_.add_option("--word", text_)->type_name("NAME")->check(CLI::IsMember({"cpu", "cuda"})));
  EXPECT_EQ(word.value, "{cpu,cuda}");
  EXPECT_THAT(word.choices, ElementsAre("cpu", "cuda"));
  const OptionDescription count =
      describe(*app_.add_option("--count", number_)->type_name("N")->check(CLI::Range(1, 8)));
  EXPECT_EQ(count.value, "N");
  EXPECT_THAT(count.choices, IsEmpty());
}

TEST_F(Described, SwitchesTakeNoValue) {
  const OptionDescription option = describe(*app_.add_flag("-j,--json", is_set_, "print JSON"));
  EXPECT_THAT(option.flags, ElementsAre("-j", "--json"));
  EXPECT_EQ(option.value, "");
  EXPECT_EQ(option.description, "print JSON");
}

TEST_F(Described, RequirementsNameTheOtherOption) {
  CLI::Option* save = app_.add_option("--save", text_);
  EXPECT_EQ(describe(*app_.add_option("--save-every", number_)->needs(save)).needed_flags,
            "--save");
}

TEST_F(Described, HiddenOptionsAndCommandsAreLeftOut) {
  app_.add_option("--hidden", text_)->group("");
  app_.add_subcommand("hidden", "for the build")->group("");
  app_.add_subcommand("shown", "for all")->add_option("file", text_);
  const CommandDescription program = describe(app_);
  EXPECT_EQ(program.name, "program");
  ASSERT_EQ(program.options.size(), 1u);
  EXPECT_THAT(program.options.front().flags, ElementsAre("-h", "--help"));
  ASSERT_EQ(program.commands.size(), 1u);
  EXPECT_EQ(program.commands.front().name, "shown");
  ASSERT_EQ(program.commands.front().positionals.size(), 1u);
  EXPECT_EQ(program.commands.front().positionals.front().positional, "file");
}

// A new option that takes a name needs a line in known_names.cpp, unless help enumerates its
// values.
TEST(KnownNames, CompleteEveryOptionThatTakesAName) {
  CLI::App app;
  plan_command(app);
  simulate_command(app);
  run_command(app);
  explain_command(app);
  sweep_command(app);
  schedule_command(app);
  show_command(app);
  import_command(app);
  CommandDescription program = describe(app);
  add_known_names(program);
  for (const CommandDescription& command : program.commands)
    for (const auto* options : {&command.options, &command.positionals})
      for (const OptionDescription& option : *options) {
        const bool takes_name = option.value.find("NAME") != std::string::npos ||
                                option.value == "KIND" || option.value.starts_with("FLAG=");
        EXPECT_TRUE(!takes_name || !option.choices.empty())
            << command.name << ": " << option.description;
      }
}

TEST(KnownNames, AreThoseThatShowLists) {
  CLI::App app;
  plan_command(app);
  sweep_command(app);
  CommandDescription program = describe(app);
  add_known_names(program);
  const auto choices = [&](std::size_t command, const std::string& flag) {
    for (const OptionDescription& option : program.commands[command].options)
      if (option.flags.back() == flag) return option.choices;
    return std::vector<std::string>();
  };
  EXPECT_THAT(choices(0, "--model"), Contains("gpt3-175b"));
  EXPECT_THAT(choices(0, "--cluster"), Contains("this-machine"));
  EXPECT_THAT(choices(0, "--schedule"), Contains("auto"));
  EXPECT_THAT(choices(0, "--dtype"), Contains("bf16"));
  EXPECT_THAT(choices(1, "--over"), Contains("global-batch="));
}

}  // namespace
}  // namespace meshwright
