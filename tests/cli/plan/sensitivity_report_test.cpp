#include "cli/plan/sensitivity_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program_fixture.hpp"
#include "tests/golden.hpp"

namespace meshwright {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

Ticks seconds(double s) { return to_ticks(Seconds(s)); }

/// Two listed plans: 10 s, and 10.4 s with less memory.
class SensitivityReport : public testing::Test {
 protected:
  SensitivityReport() {
    Strategy other;
    other.degrees.tensor = 4;
    other.degrees.data = 2;
    const PlanOutcome second{seconds(10.4), Bytes(0)};
    PlanSensitivity& s = search_.sensitivity.emplace();
    add({HardwareFigure::kLinkBandwidth, 0.9}, {seconds(11), Bytes(0)}, second,
        Winner{1, {}, seconds(10.4)});
    add({HardwareFigure::kLinkBandwidth, 1.1}, {seconds(9.5), Bytes(0)}, second,
        Winner{0, {}, seconds(9.5)});
    add({HardwareFigure::kMemory, 0.9}, {seconds(10), Bytes(std::int64_t{2} << 30)},
        {seconds(10.4), Bytes(1)}, Winner{std::nullopt, other, seconds(12)});
    add({HardwareFigure::kMemory, 1.1}, {seconds(10), Bytes(0)}, second,
        Winner{std::nullopt, other, seconds(8)});
    s.ranges = {{"all plans at p10", seconds(9), 0, seconds(9)},
                {"plan 1 at p90, others at p10", seconds(12), 1, seconds(9.6)}};
  }
  void add(Perturbation change, PlanOutcome first, PlanOutcome second,
           std::optional<Winner> winner) {
    search_.sensitivity->hardware.push_back(
        {change, {{first, second}, std::move(winner), /*gap=*/0}});
  }
  PlanSearch search_;
};

// 11 / 10.4 - 1 = 5.8 %, 10 / 8 - 1 = 25 %, 12 / 9.6 - 1 = 25 %.
TEST_F(SensitivityReport, IsATableWithAVerdict) {
  expect_golden(to_text(sensitivity_text(search_)), "plan-sensitivity.txt");
}

TEST_F(SensitivityReport, SaysWhatWasNotProvedAndWhatHasNoRange) {
  search_.sensitivity->hardware[2].result.winner.reset();
  search_.sensitivity->hardware[3].result.gap = 0.125;
  search_.sensitivity->ranges.clear();
  const std::string text = to_text(sensitivity_text(search_));
  EXPECT_THAT(text, HasSubstr("no plan"));
  EXPECT_THAT(text, HasSubstr("plan A (gap 12.5 %)"));
  EXPECT_THAT(text, HasSubstr("Each was searched again, until the time limit. Gap: how much faster "
                              "the optimum can be at most.\n"));
  EXPECT_THAT(text, HasSubstr("The prediction is unvalidated: it has no range p10 to p90.\n"));
}

TEST_F(SensitivityReport, JsonHasTheKeysThatScriptsRelyOn) {
  const Json json = Json::parse(sensitivity_json(search_));
  ASSERT_EQ(json["hardware"].size(), 4u);
  const Json& slower_links = json["hardware"][0];
  EXPECT_EQ(slower_links["figure"], "link bandwidth");
  EXPECT_EQ(slower_links["factor"], 0.9);
  EXPECT_EQ(slower_links["plans"][0]["step_time_ns"], 11'000'000'000);
  EXPECT_EQ(slower_links["fastest"]["plan"], 2);
  EXPECT_EQ(slower_links["plan_1_stays_fastest"], false);
  EXPECT_EQ(json["hardware"][1]["plan_1_stays_fastest"], true);
  EXPECT_EQ(json["hardware"][2]["plans"][0]["missing_memory_bytes"], std::int64_t{2} << 30);
  EXPECT_EQ(json["hardware"][2]["fastest"]["plan"], nullptr);
  EXPECT_EQ(json["hardware"][2]["fastest"]["strategy"]["tp"], 4);
  EXPECT_EQ(json["prediction_error"][1]["fastest_plan"], 2);
}

/// The program, as a user runs it.
class PlanSensitivityProgram : public ProgramTest {};

TEST_F(PlanSensitivityProgram, SearchesAgainForEveryChange) {
  const std::string job =
      "plan --model gpt2 --cluster dgx-a100 --gpus 8 --global-batch 64 --seq 1024 --time-limit 0 "
      "--trainer megatron-core --top 2 ";
  const ProgramRun planned = run(words_of(job + "--sensitivity --json"));
  ASSERT_EQ(planned.exit_code, 0) << planned.standard_error;
  const Json json = Json::parse(planned.standard_output);
  const Json& hardware = json["sensitivity"]["hardware"];
  ASSERT_EQ(hardware.size(), 6u);
  for (const Json& change : hardware) {
    SCOPED_TRACE(change.dump());
    EXPECT_EQ(change["plans"].size(), json["plans"].size());
    EXPECT_EQ(change["gap"], 0);
    const bool is_better = change["factor"] > 1;
    const auto step = change["fastest"]["step_time_ns"].get<std::int64_t>();
    const auto unchanged = json["plans"][0]["step_time_ns"].get<std::int64_t>();
    EXPECT_TRUE(is_better ? step <= unchanged : step >= unchanged);
  }
  // Without the option nothing is searched again.
  EXPECT_FALSE(Json::parse(run(words_of(job + "--json")).standard_output).contains("sensitivity"));
}

}  // namespace
}  // namespace meshwright
