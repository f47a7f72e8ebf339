// `report`: a plan as one HTML page.
#include <filesystem>
#include <set>

#include "core/formats/file.hpp"
#include "tests/cli/program_fixture.hpp"

namespace meshwright {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ReportPage : public ProgramTest {
 protected:
  std::vector<std::string> with_job(const std::string& more) const {
    return words_of(
        "report --model gpt2 --cluster dgx-a100 --pp 4 --dp 2 --global-batch 64 "
        "--seq 1024" +
        more);
  }
};

TEST_F(ReportPage, ContainsFiguresTimelineMemoryAndSources) {
  const ProgramRun written = run(with_job(" -o plan.html"));
  ASSERT_EQ(written.exit_code, 0) << written.standard_error;
  const std::string page = read_file(path("plan.html"));
  EXPECT_THAT(page, AllOf(HasSubstr("<h1>gpt2 on dgx-a100: 8 GPUs"), HasSubstr("step time"),
                          HasSubstr("<svg "), HasSubstr(">rank 0<"), HasSubstr("headroom"),
                          HasSubstr("Cost model: "), HasSubstr("</html>")));
}

TEST_F(ReportPage, NeedsNoOtherFile) {
  const std::string page = run(with_job("")).standard_output;
  EXPECT_THAT(page, AllOf(Not(HasSubstr("src=")), Not(HasSubstr("<link")),
                          Not(HasSubstr("@import")), Not(HasSubstr("url("))));
}

TEST_F(ReportPage, EscapesNames) {
  write_file(path("<b>.json"), read_file(MESHWRIGHT_SOURCE_DIR "/models/presets/gpt2.config.json"));
  const ProgramRun page = run({"report", "--model", "<b>.json", "--cluster", "dgx-a100", "--dp",
                               "1", "--global-batch", "4", "--seq", "512"});
  ASSERT_EQ(page.exit_code, 0) << page.standard_error;
  EXPECT_THAT(page.standard_output, AllOf(HasSubstr("&lt;b&gt;"), Not(HasSubstr("<b>"))));
}

TEST_F(ReportPage, IsNotJson) {
  EXPECT_THAT(run(with_job(" --json")), fails_with(2, "explain --json"));
}

TEST_F(ReportPage, WritesOnlyTheTimelineToAnSvgFile) {
  ASSERT_EQ(run(with_job(" -o timeline.svg")).exit_code, 0);
  EXPECT_EQ(read_file(path("timeline.svg")), run(with_job(" --svg")).standard_output);
}

TEST_F(ReportPage, IsNotWrittenToAPdf) {
  EXPECT_THAT(run(with_job(" -o plan.pdf")), fails_with(2, "print that from a browser"));
  EXPECT_FALSE(std::filesystem::exists(path("plan.pdf")));
}

TEST_F(ReportPage, ListsEachSourceOnce) {
  const std::string page = run(with_job("")).standard_output;
  EXPECT_THAT(page, HasSubstr("NVIDIA A100 datasheet"));
  const std::string list = page.substr(page.find("Assumptions and sources"));
  std::set<std::string> sources;
  for (std::size_t i = list.find("<li>"); i != std::string::npos; i = list.find("<li>", i + 1)) {
    const std::string source = list.substr(i, list.find(": <span>", i) - i);
    EXPECT_TRUE(sources.insert(source).second) << source;
  }
  EXPECT_GT(sources.size(), 3u);
}

}  // namespace
}  // namespace meshwright
