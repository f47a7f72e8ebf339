#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "core/plan.hpp"
#include "tests/core/tiny_models.hpp"

namespace meshwright {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing_models::cluster_of;
using testing_models::gpt;
using testing_models::mixture;

constexpr int kLargest = std::numeric_limits<std::int32_t>::max();

/// Four nodes of four devices; dp 2 x pp 2 x tp 2 of an 8-block GPT.
Plan sound_plan() {
  Strategy s;
  s.degrees = {.data = 2, .pipeline = 2, .tensor = 2};
  s.global_batch = 8;
  s.sequence_length = 128;
  return testing_models::even_plan(s, 8, 2);
}

std::vector<Diagnostic> findings(const std::function<void(Plan&)>& damage,
                                 std::string_view where = "--") {
  Plan plan = sound_plan();
  damage(plan);
  return check_plan(plan, gpt({.blocks = 8}), cluster_of(4, 4), where);
}

/// The only finding.
Diagnostic finding(const std::function<void(Plan&)>& damage) {
  const std::vector<Diagnostic> found = findings(damage);
  EXPECT_EQ(found.size(), 1u);
  return found.empty() ? Diagnostic{} : found.front();
}

TEST(CheckPlan, FindsNothingInASoundPlan) {
  EXPECT_THAT(findings([](Plan&) {}), IsEmpty());
}

TEST(CheckPlan, NamesFieldsAsTheirSourceWritesThem) {
  const auto damage = [](Plan& p) { p.strategy.micro_batch = 0; };
  EXPECT_EQ(findings(damage)[0].where, "--micro-batch");
  EXPECT_EQ(findings(damage, "my-plan.json#/strategy/")[0].where,
            "my-plan.json#/strategy/micro_batch");
}

TEST(CheckPlan, WantsPositiveDegrees) {
  const Diagnostic d = finding([](Plan& p) { p.strategy.degrees.tensor = 0; });
  EXPECT_EQ(d, (Diagnostic{"--tp", "must be at least 1, got 0", "1 switches it off"}));
}

TEST(CheckPlan, SurvivesTheLargestNumbers) {
  const std::vector<Diagnostic> found = findings([](Plan& p) {
    p.strategy.degrees = {kLargest, kLargest, kLargest, kLargest, kLargest, kLargest, kLargest};
    p.strategy.micro_batch = kLargest;
    p.strategy.global_batch = std::numeric_limits<std::int64_t>::max();
    p.strategy.sequence_length = std::numeric_limits<std::int64_t>::max();
    p.strategy.recompute = {RecomputeKind::kBlocks, kLargest};
    p.strategy.zero = kLargest;
  });
  EXPECT_FALSE(found.empty());
  const std::vector<Diagnostic> in_range = findings([](Plan& p) {
    p.strategy.degrees = {kLargest, kLargest, kLargest, kLargest, kLargest, kLargest, kLargest};
    p.strategy.micro_batch = kLargest;
    p.strategy.global_batch = kLargest;
    p.strategy.sequence_length = kLargest;
  });
  EXPECT_GE(in_range.size(), 3u);
}

TEST(CheckPlan, CountsRanksAgainstDevicesAndNodes) {
  const auto ranks = [](int data) {
    return [data](Plan& p) {
      p.strategy.degrees.data = data;
      p.strategy.global_batch = 4 * data;
    };
  };
  EXPECT_EQ(finding(ranks(5)).what,
            "dp 5 x pp 2 x cp 1 x tp 2 = 20 ranks, but cluster 'test-cluster' has 16 devices");
  EXPECT_THAT(findings(ranks(4)), IsEmpty());
  const Diagnostic d = finding([](Plan& p) {
    p.strategy.degrees = {.data = 3, .pipeline = 2};
    p.strategy.global_batch = 6;
  });
  EXPECT_EQ(d.what,
            "dp 3 x pp 2 x cp 1 x tp 1 = 6 ranks, which leave a node of 4 devices partly used");
  EXPECT_EQ(d.hint, "use at most 4 ranks, or a multiple of it");
}

TEST(CheckPlan, WantsHeadsDividedAndSaysByWhat) {
  Plan plan = sound_plan();
  plan.strategy.degrees = {.data = 1, .pipeline = 2, .tensor = 8};
  const auto found = check_plan(plan, gpt({.blocks = 8}), cluster_of(4, 4));
  ASSERT_EQ(found.size(), 1u);  // of the 4 key/value heads ranks could hold copies
  EXPECT_EQ(found[0].what, "tensor degree 8 does not divide the 4 attention heads of 'tiny-gpt'");
  EXPECT_EQ(found[0].hint, "degrees that divide them: 1, 2, 4");
}

TEST(CheckPlan, WantsTensorRanksForSequenceParallelism) {
  const Diagnostic d = finding([](Plan& p) {
    p.strategy.degrees = {.data = 2, .pipeline = 2};
    p.strategy.sequence_parallel = true;
  });
  EXPECT_EQ(d.where, "--sequence-parallel");
}

TEST(CheckPlan, WantsTheBatchDivided) {
  const Diagnostic d = finding([](Plan& p) { p.strategy.global_batch = 7; });
  EXPECT_EQ(d.what, "7 sequences are not a multiple of micro-batch 1 x dp 2 = 2");
  EXPECT_EQ(d.hint, "6 or 8 would be");
}

TEST(CheckPlan, WantsTheSequenceDivided) {
  EXPECT_EQ(finding([](Plan& p) {
              p.strategy.degrees.context = 2;
              p.strategy.sequence_length = 126;
            }).what,
            "sequence length 126 is not a multiple of 2 x 2 context ranks");
  EXPECT_EQ(finding([](Plan& p) {
              p.strategy.sequence_parallel = true;
              p.strategy.sequence_length = 127;
            }).what,
            "127 tokens per context rank cannot be cut over 2 tensor ranks");
}

TEST(CheckPlan, KnowsHowManyPositionsWereLearned) {
  EXPECT_EQ(finding([](Plan& p) { p.strategy.sequence_length = 256; }).what,
            "256 tokens, but 'tiny-gpt' has learned positions for 128");
}

TEST(CheckPlan, RefusesWhatThereIsNot) {
  EXPECT_EQ(finding([](Plan& p) { p.strategy.zero = 4; }).what, "there is no level 4");
  const Diagnostic d = finding([](Plan& p) { p.strategy.dtype = Dtype::kFp8; });
  EXPECT_EQ(d,
            (Diagnostic{"--dtype", "device 'test-device' has no fp8 rate", "it has: fp32, bf16"}));
}

TEST(CheckPlan, WantsAllBlocksCut) {
  EXPECT_EQ(finding([](Plan& p) {
              p.blocks_per_stage = {4, 3};
            }).what,
            "4 + 3 add up to 7, but 'tiny-gpt' has 8 blocks");
  EXPECT_EQ(finding([](Plan& p) { p.blocks_per_stage = {8}; }).what, "1 entries for 2 stages");
  EXPECT_EQ(finding([](Plan& p) { p.blocks_per_stage = {9, -1}; }).what, "stage 1 has -1 blocks");
  EXPECT_THAT(findings([](Plan& p) { p.blocks_per_stage = {8, 0}; }), IsEmpty());  // head alone
}

TEST(CheckPlan, AsksTheSchedule) {
  const Diagnostic unknown = finding([](Plan& p) { p.strategy.schedule = "1f1"; });
  EXPECT_EQ(unknown.what, "unknown schedule '1f1'");
  EXPECT_THAT(unknown.hint, HasSubstr("'1f1b'"));
  EXPECT_EQ(finding([](Plan& p) {
              p.strategy.degrees.chunks = 2;
              p.blocks_per_stage = {2, 2, 2, 2};
            }).where,
            "--schedule");
}

TEST(CheckPlan, KnowsExperts) {
  EXPECT_EQ(finding([](Plan& p) { p.strategy.degrees.expert = 2; }).what,
            "'tiny-gpt' has no experts to spread over 2 ranks");
  Plan plan = sound_plan();
  plan.strategy.degrees.expert = 3;
  const auto found = check_plan(plan, mixture(8), cluster_of(4, 4));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].what, "expert degree 3 does not divide the 4 experts of 'tiny-mixture'");
  EXPECT_EQ(found[1].what,
            "ep 3 x etp 1 = 3 does not divide the 4 ranks of a stage (tp 2 x cp 1 x dp 2)");
  plan.strategy.degrees.expert = 4;
  EXPECT_THAT(check_plan(plan, mixture(8), cluster_of(4, 4)), IsEmpty());
}

TEST(CheckPlan, LimitsTheNumberOfPasses) {
  EXPECT_EQ(finding([](Plan& p) { p.strategy.global_batch = 2'000'000'000; }).where,
            "--micro-batch");
}

TEST(RecomputeText, ReadsBackWhatItWrites) {
  for (const Recompute& r :
       {Recompute{}, Recompute{RecomputeKind::kSelective, 0}, Recompute{RecomputeKind::kFull, 0},
        Recompute{RecomputeKind::kBlocks, 12}})
    EXPECT_EQ(recompute_from_text(to_text(r)), r);
  for (const char* text : {"", "block:", "block:-1", "block:2x", "Full", "block:99999999999"})
    EXPECT_EQ(recompute_from_text(text), std::nullopt) << text;
}

TEST(AttentionText, ReadsBackWhatItWrites) {
  for (const AttentionAlgorithm a : {AttentionAlgorithm::kFlash, AttentionAlgorithm::kStandard})
    EXPECT_EQ(attention_from_name(name_of(a)), a);
  EXPECT_EQ(attention_from_name("none"), std::nullopt);
}

}  // namespace
}  // namespace meshwright
