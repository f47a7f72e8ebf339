#include "cli/plan/plan_flags.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace meshwright {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

PlanFlags job_flags() {
  PlanFlags flags;
  flags.sources.model = "gpt2";
  flags.sources.cluster = "dgx-a100";
  flags.gpus = "8";
  flags.global_batch = "64";
  flags.sequence_length = "1024";
  return flags;
}

PlanRequest request_with_gpus(const std::string& gpus) {
  PlanFlags flags = job_flags();
  flags.gpus = gpus;
  return plan_request(flags);
}

TEST(PlanFlags, OneModelOnOneClusterAtOneSizeIsOneSearch) {
  EXPECT_TRUE(is_single_search(plan_request(job_flags())));
  EXPECT_TRUE(is_single_search(request_with_gpus("auto")));
  EXPECT_FALSE(is_single_search(request_with_gpus("8,16")));
  EXPECT_FALSE(is_single_search(request_with_gpus("8..16")));
  PlanFlags flags = job_flags();
  flags.sources.cluster = "dgx-a100,dgx-h100";
  EXPECT_FALSE(is_single_search(plan_request(flags)));
  flags = job_flags();
  flags.tokens = "1B";
  EXPECT_TRUE(is_single_search(plan_request(flags)));
  flags.deadline = "3d";
  EXPECT_FALSE(is_single_search(plan_request(flags)));
}

TEST(PlanFlags, GpusAreNumbersRangesAndLists) {
  EXPECT_THAT(request_with_gpus("64").gpus, ElementsAre(SizeRange{64, 64}));
  EXPECT_THAT(request_with_gpus("64..1024,96").gpus,
              ElementsAre(SizeRange{64, 1024}, SizeRange{96, 96}));
  EXPECT_THAT(request_with_gpus("auto").gpus, IsEmpty());
  for (const char* text : {"8,,16", "8..", "..8", "8...16", "0..8", "8..16..32", "auto,8", "1e3"})
    EXPECT_THROW(request_with_gpus(text), UsageError) << text;
}

TEST(PlanFlags, TheLongestSequenceIsAskedOfOneSize) {
  PlanFlags flags = job_flags();
  flags.sequence_length = "max";
  EXPECT_EQ(plan_request(flags).sequence_length, std::nullopt);
  flags.gpus = "auto";
  EXPECT_THROW(plan_request(flags), UsageError);
}

}  // namespace
}  // namespace meshwright
