/// `validate --rank` through the program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program_fixture.hpp"

namespace meshwright {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

class RankedRuns : public ProgramTest {};

// Of the two runs of the paper on 8 GPUs, the one that recomputes everything is the slower one.
TEST_F(RankedRuns, StandAmongThePlansOfTheirTrainer) {
  const ProgramRun text =
      run({"validate", "korthikanti-2022#P1604", "korthikanti-2022#P1605", "--rank", "40"});
  ASSERT_EQ(text.exit_code, 0) << text.standard_error;
  EXPECT_THAT(text.standard_output,
              HasSubstr("2 of 2 plans are in the space that is searched for their trainer.\n"));
  const Json runs = Json::parse(run({"validate", "korthikanti-2022#P1604", "korthikanti-2022#P1605",
                                     "--rank", "40", "--json"})
                                    .standard_output)
                        .at("runs");
  ASSERT_EQ(runs.size(), 2u);
  for (const Json& run : runs) {
    EXPECT_GE(run.at("random_plans").at("fitting"), 40);
    EXPECT_EQ(run.at("not_in_space"), nullptr);
    EXPECT_LE(run.at("best").at("step_seconds"), run.at("step_seconds"));
  }
  EXPECT_GT(runs[0].at("random_plans").at("faster"), runs[1].at("random_plans").at("faster"));
}

}  // namespace
}  // namespace meshwright
