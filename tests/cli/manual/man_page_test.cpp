#include "cli/manual/man_page.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/formats/file.hpp"
#include "tests/cli/run_program.hpp"

namespace meshwright {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kDate = "2026-11-22";

TEST(RoffText, EscapesWhatRoffWouldInterpret) {
  EXPECT_EQ(roff_text("C:\\x"), "C:\\ex");
  EXPECT_EQ(roff_text("--tp 8"), "\\-\\-tp 8");
  EXPECT_EQ(roff_text(".dot\n.dot 0.5"), "\\&.dot\n\\&.dot 0.5");
  EXPECT_EQ(roff_text("'quote' ~ ^"), "\\(aqquote\\(aq \\(ti \\(ha");
  EXPECT_EQ(roff_text("V,\u2026 \u00d7 \U0001F600"), "V,\\[u2026] \\[u00D7] \\[u1F600]");
}

TEST(RoffText, PrintsBackquotedTextInBold) {
  EXPECT_EQ(roff_text("see `plan --fix`."), "see \\fBplan \\-\\-fix\\fR.");
  EXPECT_EQ(roff_text("a lone ` stays"), "a lone \\(ga stays");
}

CommandDescription small_program() {
  const OptionDescription help{.flags = {"-h", "--help"},
                               .positional = {},
                               .value = {},
                               .choices = {},
                               .description = "print help",
                               .group = "General",
                               .needed_flags = {}};
  OptionDescription type = help;
  type.flags = {"--dtype"};
  type.value = "{bf16,SIZE}";
  type.choices = {"bf16"};
  type.description = "data type";
  type.group = "Precision";
  type.needed_flags = "--tp";
  OptionDescription file = help;
  file.flags = {};
  file.positional = "plan";
  file.value = "FILE";
  file.description = "plan file";
  CommandDescription plan{.name = "plan",
                          .description = "Search for the fastest plan. Slowly.",
                          .footer = "One paragraph\nof text.\n\nExamples:\n  prog plan \\\n      x",
                          .options = {type, help},
                          .positionals = {file},
                          .commands = {}};
  return {.name = "prog",
          .description = "MFU for all",
          .footer = {},
          .options = {help},
          .positionals = {},
          .commands = {plan}};
}

TEST(ManPages, HaveOnePagePerCommand) {
  const std::vector<ManPage> pages = man_pages(small_program(), {"1.2.3", kDate});
  ASSERT_EQ(pages.size(), 2u);
  EXPECT_EQ(pages[0].file_name, "prog.1");
  EXPECT_EQ(pages[1].file_name, "prog-plan.1");
  EXPECT_THAT(pages[0].text, HasSubstr(".TH \"PROG\" 1 \"2026-11-22\" \"Meshwright 1.2.3\""));
  EXPECT_THAT(pages[0].text, HasSubstr("prog \\- MFU for all\n"));
  EXPECT_THAT(pages[0].text, HasSubstr(".TP\n\\fBprog\\-plan\\fR(1)\nSearch for"));
  EXPECT_THAT(pages[0].text, Not(HasSubstr(".SS")));  // one group: no heading
  EXPECT_THAT(pages[0].text, HasSubstr(".TP\n\\fB130\\fR\ninterrupted\n"));
}

TEST(ManPages, DescribeACommandAsHelpDoes) {
  const std::string page = man_pages(small_program(), {"1.2.3", kDate})[1].text;
  EXPECT_THAT(page, HasSubstr("prog\\-plan \\- search for the fastest plan\n"));
  EXPECT_THAT(page, HasSubstr("\\fBprog plan\\fR [\\fIOPTIONS\\fR] [\\fIPLAN\\fR]\n"));
  EXPECT_THAT(page, HasSubstr(".PP\nOne paragraph\nof text.\n"));
  EXPECT_THAT(page, HasSubstr(".TP\n\\fIPLAN\\fR\nplan file\n"));
  EXPECT_THAT(page, HasSubstr(".SS \"Precision\"\n.TP\n\\fB\\-\\-dtype\\fR {\\fBbf16\\fR,"
                              "\\fISIZE\\fR}\ndata type (requires \\-\\-tp)\n"));
  EXPECT_THAT(page, HasSubstr(".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nprint help\n"));
  EXPECT_THAT(page, HasSubstr(".SH EXAMPLES\n.EX\nprog plan \\e\n    x\n.EE\n"));
}

TEST(ManPages, AreWrittenForEveryCommandOfTheProgram) {
  const TemporaryFolder folder;
  const auto run = [&](std::vector<std::string> arguments) {
    return run_program({.program = MESHWRIGHT_PROGRAM,
                        .arguments = std::move(arguments),
                        .folder = folder.path()});
  };
  const ProgramRun written = run({"man-pages", ".", "--date", kDate});
  ASSERT_EQ(written.exit_code, 0) << written.standard_error;
  const std::vector<std::string> files = folder.file_names();
  for (const char* command :
       {"plan", "simulate", "run", "compare", "calibrate", "fit", "explain", "report", "sweep",
        "schedule", "show", "export", "import", "doctor", "completion"})
    EXPECT_THAT(files, Contains(std::string("meshwright-") + command + ".1"));
  EXPECT_THAT(files, Not(Contains("meshwright-man-pages.1")));
  EXPECT_THAT(read_file((folder.path() / "meshwright-plan.1").string()),
              HasSubstr("\\fB\\-\\-global\\-batch\\fR \\fIN\\fR\n"));
  EXPECT_EQ(run({"--help"}).standard_output.find("man-pages"), std::string::npos);
}

}  // namespace
}  // namespace meshwright
