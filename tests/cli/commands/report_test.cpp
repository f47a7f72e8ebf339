// `report`: a plan as one HTML page.
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

}  // namespace
}  // namespace meshwright
