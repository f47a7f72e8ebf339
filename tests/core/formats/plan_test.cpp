#include "core/formats/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/complaints.hpp"
#include "tests/golden.hpp"
#include "tests/mutants.hpp"
#include "tests/replaced.hpp"

namespace meshwright {
namespace {
using testing::HasSubstr;

Strategy small_strategy() {
  Strategy s;
  s.degrees = {.data = 2, .pipeline = 2, .chunks = 1, .tensor = 8};
  s.sequence_parallel = true;
  s.micro_batch = 2;
  s.global_batch = 32;
  s.sequence_length = 2048;
  s.recompute = {RecomputeKind::kBlocks, 4};
  s.zero = 1;
  return s;
}

PlanFile small_file() {
  PlanFile file;
  file.model_name = "gpt2";
  file.model_config = "{\"model_type\": \"gpt2\"}";
  file.cluster_name = "dgx-a100";
  file.cluster_toml = "schema = 1\nname = \"dgx\"\n";
  file.plan = {small_strategy(), {6, 6}};
  PlanFigures f;
  f.strategy = file.plan.strategy;
  f.step_time = Ticks(1'234'567'000);
  f.period = Ticks(1'200'000'000);
  f.tokens_per_second_per_gpu = 1234.5;
  f.model_tflops_per_gpu = 150.25;
  f.mfu = 0.48;
  f.hfu = 0.5;
  f.bubble_of_period = 0.03125;
  f.bubble_of_makespan = 0.0625;
  f.busiest_rank_bubble = 0.015625;
  f.exposed_communication = {0.01, 0.02, 0.03, 0.04, 0.05};  // tp cp ep dp pp
  f.peak_memory = Bytes(50'000'000'000);
  f.memory_capacity = Bytes(85'899'345'920);
  f.peak_memory_per_stage = {Bytes(50'000'000'000), Bytes(40'000'000'000)};
  f.why = "limited by the bubble; pp 1 would not fit";
  file.predicted = f;
  file.cost_model = "analytic";
  return file;
}

std::string refusal_of(const std::string& text) {
  return complaints_of([&] { plan_file_from_json(text, "x.plan.json"); });
}

/// The small file with one substring replaced.
std::string edited(const std::string& from, const std::string& to) {
  return replaced(to_json(small_file()), from, to);
}

TEST(PlanFile, LooksAsTheGoldenFileDoes) {
  expect_golden(to_json(small_file()), "small.plan.json");
}

TEST(PlanFile, KeepsOptionsOfTheModelAxes) {
  PlanFile file = small_file();
  file.predicted.reset();
  ModelParallelism& m = file.plan.strategy.model_parallelism;
  m.tensor_overlap = true;
  m.context = ContextAlgorithm::kRing;
  m.routing = {
      .capacity = 1.25, .imbalance = 1.5, .fp8_dispatch = true, .node_limit = 4, .overlap = true};
  m.order = *rank_order_from_text("dp-cp-ep-tp-pp");
  file.plan.device_of_stage = {0, 1, 0};
  EXPECT_EQ(plan_file_from_json(to_json(file), "x"), file);
}

TEST(PlanFile, KeepsOptionsOfLayersAndDataRanks) {
  PlanFile file = small_file();
  file.predicted.reset();
  file.plan.strategy.layer_options = *layer_options_from_text("0-1:recompute=full+2:tp=1");
  file.plan.strategy.batch_shares = *batch_shares_from_text("0-1:12+2:4");
  EXPECT_EQ(plan_file_from_json(to_json(file), "x"), file);
  EXPECT_THAT(refusal_of(edited("\"tp\": 8", "\"batch_shares\": \"0-1\", \"tp\": 8")),
              HasSubstr("invalid value '0-1'"));
}

TEST(PlanFile, KeepsThePrecision) {
  PlanFile file = small_file();
  file.predicted.reset();
  file.plan.strategy.dtype = Dtype::kFp8;
  file.plan.strategy.precision = {.gradients = Dtype::kBf16,
                                  .fp8_recipe = Fp8Recipe::kMxfp8,
                                  .fp8_parameters = true,
                                  .wide_blocks = 2};
  EXPECT_EQ(plan_file_from_json(to_json(file), "x"), file);
  EXPECT_THAT(refusal_of(edited("\"tp\": 8", "\"fp8_recipe\": \"mx\", \"tp\": 8")),
              HasSubstr("invalid value 'mx'\n"
                        "  hint: expected one of: delayed, tensorwise, blockwise, mxfp8"));
}

TEST(PlanFile, RefusesUnknownWordsOfTheModelAxes) {
  const auto with = [](const std::string& entry) {
    return refusal_of(edited("\"tp\": 8", entry + ", \"tp\": 8"));
  };
  EXPECT_THAT(with("\"context_algorithm\": \"gossip\""),
              HasSubstr("invalid value 'gossip'\n"
                        "  hint: expected one of: all-gather, ring, all-to-all"));
  EXPECT_THAT(with("\"rank_order\": \"tp-dp\""), HasSubstr("invalid value 'tp-dp'"));
  EXPECT_THAT(with("\"expert_capacity\": -1"), HasSubstr("expert_capacity"));
}

TEST(PlanFile, ReadsBackEqual) {
  PlanFile file = small_file();
  EXPECT_EQ(plan_file_from_json(to_json(file), "x"), file);
  file.predicted.reset();
  EXPECT_EQ(plan_file_from_json(to_json(file), "x"), file);
}

// Files of earlier versions have the figure of the busiest rank as `period`.
TEST(PlanFile, ReadsABubbleWithoutTheBusiestRank) {
  const PlanFile read =
      plan_file_from_json(edited(",\n      \"busiest_rank_period\": 0.015625", ""), "x");
  EXPECT_EQ(read.predicted->bubble_of_period, 0.03125);
  EXPECT_EQ(read.predicted->busiest_rank_bubble, 0.03125);
}

TEST(PlanFile, KeepsTheCalibrationThatItWasMadeWith) {
  PlanFile file = small_file();
  EXPECT_EQ(to_json(file).find("calibration"), std::string::npos);
  file.calibration = "{\"schema\": 1}";
  EXPECT_EQ(plan_file_from_json(to_json(file), "x"), file);
}

TEST(PlanFile, TimesAreWholeNanosecondsRoundedToNearest) {
  PlanFile file = small_file();
  file.predicted->step_time = Ticks(1'234'567'499);
  file.predicted->period = Ticks(1'200'000'500);
  const PlanFile read = plan_file_from_json(to_json(file), "x");
  EXPECT_EQ(read.predicted->step_time, Ticks(1'234'567'000));
  EXPECT_EQ(read.predicted->period, Ticks(1'200'001'000));
  EXPECT_EQ(to_json(read), to_json(plan_file_from_json(to_json(read), "x")));
}

TEST(PlanFile, TakesDefaultsForWhatAStrategyLeavesOut) {
  const PlanFile file = plan_file_from_json(
      R"({"schema": 1, "model": {"name": "m", "config": ""}, "cluster": {"name": "c", "toml": ""},
          "strategy": {"global_batch": 4, "seq": 128}, "blocks_per_stage": [12],
          "cost_model": ""})",
      "x");
  Strategy expected;
  expected.global_batch = 4;
  expected.sequence_length = 128;
  EXPECT_EQ(file.plan.strategy, expected);
  EXPECT_FALSE(file.predicted);
}

TEST(PlanFile, NamesTheKeyThatWasMeant) {
  EXPECT_THAT(refusal_of(edited("\"micro_batch\"", "\"microbatch\"")),
              HasSubstr("error: x.plan.json#/strategy/microbatch: unknown key 'microbatch'\n"
                        "  hint: did you mean 'micro_batch'"));
}

TEST(PlanFile, SaysWhatWasExpectedAndWhatItGot) {
  EXPECT_THAT(refusal_of(edited("\"tp\": 8", "\"tp\": \"8\"")),
              HasSubstr("x.plan.json#/strategy/tp: expected a whole number, got the string \"8\""));
  EXPECT_THAT(refusal_of(edited("\"tp\": 8", "\"tp\": 0")),
              HasSubstr("x.plan.json#/strategy/tp: 0 is out of range"));
  EXPECT_THAT(refusal_of(edited("\"tp\": 8", "\"tp\": 99999999999999999999")),
              HasSubstr("expected a whole number, got the number 1e+20"));
  EXPECT_THAT(refusal_of(edited("\"bf16\"", "\"bf61\"")),
              HasSubstr("x.plan.json#/strategy/dtype: invalid value 'bf61'"));
  EXPECT_THAT(refusal_of(edited("\"block:4\"", "\"blok:4\"")),
              HasSubstr("hint: expected one of: none, selective, full, block:N"));
  EXPECT_THAT(refusal_of(edited("\"schema\": 1", "\"schema\": 2")),
              HasSubstr("x.plan.json#/schema: expected 1, got the number 2"));
  EXPECT_THAT(refusal_of("[]"), HasSubstr("x.plan.json: expected an object, got an array"));
}

TEST(PlanFile, RefusesDegreesWhoseProductIsBeyondAnyMachine) {
  const std::string text = edited("\"tp\": 8", "\"tp\": 1000000");
  EXPECT_THAT(refusal_of(replaced(text, "\"dp\": 2", "\"dp\": 1000000")),
              HasSubstr("tp x pp x dp x cp exceeds"));
}

TEST(PlanFile, RefusesFiguresOfAnotherStrategy) {
  EXPECT_THAT(refusal_of(edited("\"tp\": 8", "\"tp\": 4")),
              HasSubstr("x.plan.json#/predicted: the strategy of the prediction differs"));
}

TEST(PlanFile, ReportsEverythingInOnePass) {
  const std::string message =
      refusal_of(replaced(edited("\"tp\": 8", "\"tp\": 0"), "\"cost_model\"", "\"costmodel\""));
  EXPECT_THAT(message, HasSubstr("/strategy/tp"));
  EXPECT_THAT(message, HasSubstr("missing key 'cost_model'"));
  EXPECT_THAT(message, HasSubstr("did you mean 'cost_model'"));
}

// Changes, deletes and duplicates bytes of a valid file at random positions: the reader may reject
// the result; accepted files must survive another round trip.
TEST(PlanFile, SurvivesMutations) {
  constexpr int kCases = 4000;
  const std::string original = to_json(small_file());
  const auto mutant = [&](std::mt19937& random) {
    std::string text = original;
    for (auto edits = 1 + random() % 4; edits > 0; --edits) {
      const std::size_t at = random() % text.size();
      constexpr std::string_view kLikely = "0123456789-.e\"{}[]:,tfn \\u";
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random() % 256);
          break;
        case 1:
          text[at] = kLikely[random() % kLikely.size()];
          break;
        case 2:
          text.erase(at, 1 + random() % 20);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 40));
      }
      if (text.empty()) text = "{";
    }
    return text;
  };
  const int accepted = accepted_mutants(kCases, mutant, [](const std::string& text) {
    const PlanFile file = plan_file_from_json(text, "x");
    EXPECT_EQ(plan_file_from_json(to_json(file), "x"), file);
  });
  EXPECT_GT(accepted, 0) << "mutations of names and figures are still plans";
  EXPECT_LT(accepted, kCases / 2);
}

TEST(PlanFigures, JoinsRanksByPipelinePosition) {
  Strategy strategy = small_strategy();
  Evaluation e;
  e.step_time = Ticks(1000);
  e.period = Ticks(900);
  e.model_flops_per_gpu = FlopsPerSecond(1.5e14);
  for (const std::int64_t bytes : {10, 30, 20, 5}) {  // two ranks for each of two pipeline ranks
    MemoryAmounts amounts;
    amounts[MemoryClass::kWeights] = Bytes(bytes - 1);
    amounts[MemoryClass::kReserved] = Bytes(1);
    e.peak_memory.push_back(amounts);
    RankBreakdown b;
    b.exposed_communication[static_cast<std::size_t>(Axis::kData)] = Ticks(100);
    e.ranks.push_back(b);
    e.multiplicity.push_back(1);
  }
  const PlanFigures f = figures_of(strategy, e, "why");
  EXPECT_EQ(f.peak_memory_per_stage, (std::vector<Bytes>{Bytes(30), Bytes(20)}));
  EXPECT_EQ(f.peak_memory, Bytes(30));
  EXPECT_EQ(f.model_tflops_per_gpu, 150.0);
  EXPECT_EQ(f.exposed_communication[static_cast<std::size_t>(Axis::kData)], 0.1);
  EXPECT_EQ(f.strategy, strategy);
  EXPECT_EQ(f.why, "why");
}

}  // namespace
}  // namespace meshwright
