#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <set>
#include <string>

#include "core/base/json_value.hpp"
#include "core/formats/plan.hpp"
#include "core/plan/plan.hpp"
#include "tests/core/tiny_models.hpp"

namespace meshwright {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using namespace testing_models;

constexpr int kLargest = std::numeric_limits<std::int32_t>::max();

/// Four nodes of four devices; dp 2 x pp 2 x tp 2 of an 8-block GPT.
Plan sound_plan() {
  Strategy s;
  s.degrees = {.data = 2, .pipeline = 2, .tensor = 2};
  s.global_batch = 8;
  s.sequence_length = 128;
  return even_plan(s, 8, 2);
}

std::vector<Diagnostic> findings(const std::function<void(Plan&)>& damage,
                                 std::string_view where = "--") {
  Plan plan = sound_plan();
  damage(plan);
  return check_plan(plan, gpt({.blocks = 8}), cluster_of(4, 4), where);
}

/// The only problem.
Diagnostic finding(const std::function<void(Plan&)>& damage) {
  const std::vector<Diagnostic> found = findings(damage);
  EXPECT_EQ(found.size(), 1u);
  return found.empty() ? Diagnostic{} : found.front();
}

TEST(CheckPlan, AcceptsAValidPlan) {
  EXPECT_THAT(findings([](Plan&) {}), IsEmpty());
}

TEST(CheckPlan, NamesFieldsAsTheirSourceWritesThem) {
  const auto damage = [](Plan& p) { p.strategy.micro_batch = 0; };
  EXPECT_EQ(findings(damage)[0].where, "--micro-batch");
  EXPECT_EQ(findings(damage, "my-plan.json#/")[0].where, "my-plan.json#/strategy/micro_batch");
}

TEST(CheckPlan, NamesFieldsOutsideTheStrategyAsTheirSourceWritesThem) {
  const auto place = [](const std::function<void(Plan&)>& damage, std::string_view where) {
    const std::vector<Diagnostic> found = findings(damage, where);
    return found.empty() ? "" : found.front().where;
  };
  const auto blocks = [](Plan& p) { p.blocks_per_stage = {8}; };
  const auto devices = [](Plan& p) { p.device_of_stage = {0, 2}; };
  const auto orders = [](Plan& p) { p.orders.resize(1); };
  EXPECT_EQ(place(blocks, "--"), "--blocks-per-stage");
  EXPECT_EQ(place(blocks, "x.plan.json#/"), "x.plan.json#/blocks_per_stage");
  EXPECT_EQ(place(devices, "--"), "--stage-devices");
  EXPECT_EQ(place(devices, "x.plan.json#/"), "x.plan.json#/device_of_stage");
  EXPECT_EQ(place(orders, "--"), "--schedule");
  EXPECT_EQ(place(orders, "x.plan.json#/"), "x.plan.json#/orders");
}

/// True if a JSON pointer such as "/strategy/tp" leads to a value.
bool resolves(const JsonValue& root, std::string_view pointer) {
  const JsonValue* value = &root;
  while (!pointer.empty()) {
    pointer.remove_prefix(1);  // the slash
    const std::string_view token = pointer.substr(0, pointer.find('/'));
    pointer.remove_prefix(token.size());
    const auto* object = value->as<JsonObject>();
    if (object == nullptr) return false;
    value = nullptr;
    for (const JsonMember& member : *object)
      if (member.key == token) value = &member.value;
    if (value == nullptr) return false;
  }
  return true;
}

/// One damage for every field that check_plan() can report.
std::vector<std::function<void(Plan&)>> all_damages() {
  using Damage = std::function<void(Plan&)>;
  std::vector<Damage> damages;
  const auto routing = [&](const ExpertRouting& r) {
    damages.push_back([r](Plan& p) { p.strategy.model_parallelism.routing = r; });
  };
  routing({.capacity = 1});
  routing({.imbalance = 2});
  routing({.fp8_dispatch = true});
  routing({.node_limit = 1});
  routing({.overlap = true});
  const auto servers = [&](int count) {
    damages.push_back([count](Plan& p) {
      p.strategy.degrees = {.data = 16};
      p.strategy.global_batch = 16;
      p.strategy.data_parallelism.kind = DataParallelKind::kParameterServer;
      p.strategy.data_parallelism.servers = count;
    });
  };
  servers(1);
  servers(2);
  const std::vector<Damage> others{
      [](Plan& p) { p.strategy.degrees = {0, 0, 0, 0, 0, 0, 0}; },
      [](Plan& p) { p.strategy.micro_batch = 0; },
      [](Plan& p) { p.strategy.global_batch = 0; },
      [](Plan& p) { p.strategy.sequence_length = 0; },
      [](Plan& p) {
        p.strategy.degrees.tensor = 1;
        p.strategy.sequence_parallel = true;
      },
      [](Plan& p) { p.strategy.zero = 4; },
      [](Plan& p) {
        p.strategy.recompute = {RecomputeKind::kBlocks, 99};
      },
      [](Plan& p) { p.strategy.layer_options = *layer_options_from_text("99:recompute=full"); },
      [](Plan& p) { p.strategy.dtype = Dtype::kFp8; },
      [](Plan& p) { p.strategy.precision.gradients = Dtype::kFp16; },
      [](Plan& p) { p.strategy.precision.fp8_recipe = Fp8Recipe::kBlockwise; },
      [](Plan& p) { p.strategy.precision.fp8_parameters = true; },
      [](Plan& p) { p.strategy.precision.wide_blocks = 1; },
      [](Plan& p) { p.strategy.schedule = "1f1"; },
      [](Plan& p) { p.blocks_per_stage = {8}; },
      [](Plan& p) {
        p.device_of_stage = {0, 2};
      },
      [](Plan& p) { p.orders.resize(1); },
      [](Plan& p) { p.strategy.model_parallelism.tensor_overlap = true; },
      [](Plan& p) {
        p.strategy.degrees.context = 2;
        p.strategy.model_parallelism.context = ContextAlgorithm::kRing;
        p.strategy.attention = AttentionAlgorithm::kStandard;
      },
      [](Plan& p) {
        p.strategy.degrees.context = 2;
        p.strategy.model_parallelism.order = *rank_order_from_text("cp-tp-ep-dp-pp");
      },
      [](Plan& p) {
        p.strategy.zero = 3;
        p.strategy.data_parallelism.buckets.rule = BucketRule::kPyTorch;
      },
      [](Plan& p) { p.strategy.data_parallelism.overlap_gather = true; },
      [](Plan& p) { p.strategy.data_parallelism.prefetch = 1000; },
      [](Plan& p) { p.strategy.data_parallelism.shard_ranks = 3; },
      [](Plan& p) { p.strategy.data_parallelism.algorithm = CollectiveAlgorithm::kNvls; },
      [](Plan& p) { p.strategy.data_parallelism.offload_optimizer = true; },
      [](Plan& p) { p.strategy.data_parallelism.kind = DataParallelKind::kOneProcess; }};
  damages.insert(damages.end(), others.begin(), others.end());
  return damages;
}

TEST(CheckPlan, PointsAtKeysOfTheWrittenPlanFile) {
  constexpr std::string_view kRoot = "x.plan.json#";
  std::set<std::string> pointers;
  for (const auto& damage : all_damages()) {
    PlanFile file;
    file.plan = sound_plan();
    damage(file.plan);
    const JsonValue json = parse_json(to_json(file), "x.plan.json");
    const std::vector<Diagnostic> found = findings(damage, std::string(kRoot) + "/");
    EXPECT_FALSE(found.empty()) << to_json(file);
    for (const Diagnostic& d : found) {
      ASSERT_TRUE(d.where.starts_with(kRoot)) << d.where;
      const std::string pointer = d.where.substr(kRoot.size());
      EXPECT_TRUE(resolves(json, pointer)) << pointer << ": " << d.what;
      pointers.insert(pointer);
    }
  }
  std::set<std::string> expected{"/blocks_per_stage", "/device_of_stage", "/orders"};
  for (const char* key : {"dp",
                          "pp",
                          "vpp",
                          "cp",
                          "tp",
                          "ep",
                          "etp",
                          "micro_batch",
                          "global_batch",
                          "seq",
                          "sequence_parallel",
                          "zero",
                          "recompute",
                          "layer_options",
                          "dtype",
                          "grad_dtype",
                          "fp8_recipe",
                          "fp8_param_gather",
                          "bf16_end_layers",
                          "schedule",
                          "tp_comm_overlap",
                          "context_algorithm",
                          "expert_capacity",
                          "expert_imbalance",
                          "expert_fp8_dispatch",
                          "expert_node_limit",
                          "expert_overlap",
                          "rank_order",
                          "bucket",
                          "overlap_gather",
                          "fsdp_prefetch",
                          "shard_ranks",
                          "collective_algorithm",
                          "offload_optimizer",
                          "data_parallel",
                          "servers"})
    expected.insert(std::string("/strategy/") + key);
  EXPECT_EQ(pointers, expected);
}

TEST(CheckPlan, RequiresPositiveDegrees) {
  const Diagnostic d = finding([](Plan& p) { p.strategy.degrees.tensor = 0; });
  EXPECT_EQ(d, (Diagnostic{"--tp", "must be at least 1, got 0", "use 1 to disable this axis"}));
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
  const auto pairs = [](int data) {
    return [data](Plan& p) {
      p.strategy.degrees = {.data = data, .pipeline = 2};
      p.strategy.global_batch = data;
    };
  };
  EXPECT_THAT(findings(pairs(3)), IsEmpty());  // 2 of the 4 devices of 3 nodes
  const Diagnostic d = finding(pairs(5));      // 2 of the 4 devices of 5 nodes, but there are 4
  EXPECT_EQ(d.what,
            "dp 5 x pp 2 x cp 1 x tp 1 = 10 ranks, which cannot be spread evenly over 4 nodes of 4 "
            "devices");
  EXPECT_EQ(d.hint,
            "use at most 4 ranks, a multiple of 4, or the same even number of ranks on every node");
}

TEST(CheckPlan, RequiresDivisibleHeadsAndListsTheDivisors) {
  Plan plan = sound_plan();
  plan.strategy.degrees = {.data = 1, .pipeline = 2, .tensor = 8};
  const auto found = check_plan(plan, gpt({.blocks = 8}), cluster_of(4, 4));
  ASSERT_EQ(found.size(), 1u);  // the 4 key/value heads could be replicated
  EXPECT_EQ(found[0].what,
            "tensor-parallel size 8 does not divide the 4 attention heads of 'tiny-gpt'");
  EXPECT_EQ(found[0].hint, "use one of: 1, 2, 4");
}

TEST(CheckPlan, RequiresTensorRanksForSequenceParallelism) {
  const Diagnostic d = finding([](Plan& p) {
    p.strategy.degrees = {.data = 2, .pipeline = 2};
    p.strategy.sequence_parallel = true;
  });
  EXPECT_EQ(d.where, "--sequence-parallel");
}

TEST(CheckPlan, RequiresADivisibleBatch) {
  const Diagnostic d = finding([](Plan& p) { p.strategy.global_batch = 7; });
  EXPECT_EQ(d.what, "global batch 7 is not a multiple of micro-batch 1 x dp 2 = 2");
  EXPECT_EQ(d.hint, "use 6 or 8");
}

TEST(CheckPlan, RequiresADivisibleSequence) {
  EXPECT_EQ(finding([](Plan& p) {
              p.strategy.degrees.context = 2;
              p.strategy.sequence_length = 126;
            }).what,
            "sequence length 126 is not a multiple of 2 x context-parallel size 2");
  EXPECT_EQ(finding([](Plan& p) {
              p.strategy.sequence_parallel = true;
              p.strategy.sequence_length = 127;
            }).what,
            "127 tokens per context rank cannot be sharded over 2 tensor ranks");
}

TEST(CheckPlan, LimitsTheSequenceToLearnedPositions) {
  EXPECT_EQ(finding([](Plan& p) { p.strategy.sequence_length = 256; }).what,
            "sequence length 256 exceeds the 128 learned positions of 'tiny-gpt'");
}

TEST(CheckPlan, RejectsUnknownNames) {
  EXPECT_EQ(finding([](Plan& p) { p.strategy.zero = 4; }).what, "invalid ZeRO stage 4");
  const Diagnostic d = finding([](Plan& p) { p.strategy.dtype = Dtype::kFp8; });
  EXPECT_EQ(d, (Diagnostic{"--dtype", "device 'test-device' does not support fp8",
                           "use one of: fp32, bf16"}));
}

/// Findings on devices of this compute capability that have every dtype.
std::vector<Diagnostic> findings_on(int capability, Dtype dtype, const Precision& precision) {
  Cluster cluster = cluster_of(4, 4);
  DeviceModel& device = cluster.devices.at("test-device");
  device.peak.fill(FlopsPerSecond(1e15));
  device.compute_capability = capability;
  Plan plan = sound_plan();
  plan.strategy.dtype = dtype;
  plan.strategy.precision = precision;
  return check_plan(plan, gpt({.blocks = 8}), cluster);
}

TEST(CheckPlan, RejectsRecipesThatDoNotApply) {
  EXPECT_THAT(findings_on(90, Dtype::kFp8, {}), IsEmpty());
  EXPECT_THAT(
      findings_on(90, Dtype::kFp8, {.fp8_recipe = Fp8Recipe::kMxfp8}),
      testing::ElementsAre(Diagnostic{"--fp8-recipe", "device 'test-device' does not support mxfp8",
                                      "use one of: delayed, tensorwise, blockwise"}));
  EXPECT_THAT(
      findings_on(100, Dtype::kNvfp4, {.fp8_parameters = true}),
      testing::ElementsAre(Diagnostic{"--fp8-param-gather", "has no effect with dtype nvfp4",
                                      "use it with --dtype fp8"}));
  EXPECT_THAT(
      findings_on(100, Dtype::kNvfp4, {.wide_blocks = 5}),
      testing::ElementsAre(Diagnostic{"--bf16-end-layers",
                                      "5 is out of range: 'tiny-gpt' has 8 blocks", "use 0 to 4"}));
}

TEST(CheckPlan, RequiresGradientsInTheTrainingDtype) {
  EXPECT_EQ(finding([](Plan& p) { p.strategy.precision.gradients = Dtype::kFp16; }),
            (Diagnostic{"--grad-dtype", "fp16 gradients cannot be combined with training in bf16",
                        "use fp32 or bf16"}));
  EXPECT_THAT(findings([](Plan& p) { p.strategy.precision.gradients = Dtype::kBf16; }), IsEmpty());
  const Diagnostic servers = finding([](Plan& p) {
    p.strategy.degrees = {.data = 8};
    p.blocks_per_stage = {8};
    p.strategy.data_parallelism.kind = DataParallelKind::kParameterServer;
    p.strategy.precision.gradients = Dtype::kBf16;
  });
  EXPECT_EQ(servers.what,
            "bf16 gradients cannot be combined with data parallelism 'parameter-server'");
}

TEST(CheckPlan, RequiresAllBlocksOnStages) {
  EXPECT_EQ(finding([](Plan& p) {
              p.blocks_per_stage = {4, 3};
            }).what,
            "7 blocks in total, but 'tiny-gpt' has 8");
  EXPECT_EQ(finding([](Plan& p) { p.blocks_per_stage = {8}; }).what,
            "expected 2 entries (one per stage), got 1");
  EXPECT_EQ(finding([](Plan& p) { p.blocks_per_stage = {9, -1}; }).what, "stage 1 has -1 blocks");
  EXPECT_THAT(findings([](Plan& p) { p.blocks_per_stage = {8, 0}; }), IsEmpty());  // head alone
}

TEST(CheckPlan, ReportsProblemsOfTheSchedule) {
  const Diagnostic unknown = finding([](Plan& p) { p.strategy.schedule = "1f1"; });
  EXPECT_EQ(unknown.what, "unknown schedule '1f1'");
  EXPECT_THAT(unknown.hint, HasSubstr("'1f1b'"));
  EXPECT_EQ(finding([](Plan& p) {
              p.strategy.degrees.chunks = 2;
              p.blocks_per_stage = {2, 2, 2, 2};
            }).where,
            "--schedule");
}

TEST(CheckPlan, ChecksExperts) {
  EXPECT_EQ(finding([](Plan& p) { p.strategy.degrees.expert = 2; }).what,
            "'tiny-gpt' has no experts to shard over 2 ranks");
  Plan plan = sound_plan();
  plan.strategy.degrees.expert = 3;
  const auto found = check_plan(plan, mixture(8), cluster_of(4, 4));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].what,
            "expert-parallel size 3 does not divide the 4 experts of 'tiny-mixture'");
  EXPECT_EQ(found[1].what,
            "ep 3 x etp 1 = 3 does not divide the 4 ranks per stage (tp 2 x cp 1 x dp 2)");
  plan.strategy.degrees.expert = 4;
  EXPECT_THAT(check_plan(plan, mixture(8), cluster_of(4, 4)), IsEmpty());
}

// A valid plan can be written to a plan file and read again, also where a number has no effect.
TEST(CheckPlan, RefusesNumbersOfServersThatPlanFilesCannotHave) {
  for (const int servers : {0, -1, 1'000'001})
    EXPECT_EQ(finding([&](Plan& p) { p.strategy.data_parallelism.servers = servers; }),
              (Diagnostic{"--servers",
                          std::to_string(servers) + " is out of range: expected 1 to 1000000",
                          "remove it: '--data-parallel collective' has no servers"}));
  EXPECT_THAT(findings([](Plan& p) { p.strategy.data_parallelism.servers = 1'000'000; }),
              IsEmpty());
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
