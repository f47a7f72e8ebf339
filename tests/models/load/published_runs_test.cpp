#include "models/load/published_runs.hpp"
#include "models/load/load.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/complaints.hpp"
#include "tests/replaced.hpp"

namespace meshwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Two runs of a small model; each test changes a part of the text.
constexpr std::string_view kSmallSet = R"(schema = 1
source = "a paper, table 1"
trust = "high"
defaults.trainer = "megatron-2021"
defaults.cluster = "dgx-a100"
defaults.seq = 1024
models.tiny = {model_type = "gpt2", n_layer = 8, n_embd = 1024, n_head = 16}
clusters.small.extends = "dgx-a100"
clusters.small.nodes.dgx.ports = 4

[[runs]]
id = "first"
model = "tiny"
gpus = 16
tp = 2
pp = 2
vpp = 2
micro_batch = 2
global_batch = 32
blocks_per_stage = "uniform"
step_time = "1.42 s"
memory = "39.07 GiB"
memory_kind = "reserved"
assumed = ["recompute"]

[[runs]]
id = "second"
model = "gpt2"
cluster = "small"
gpus = 8
seq = 512
global_batch = 8
memory = "oom"
trap = "another batch"
)";

PublishedSet read(std::string text) {
  return published_set_from_toml({.name = "small", .where = "small.toml", .text = std::move(text)});
}

std::string changed(std::string_view from, std::string_view to) {
  return replaced(std::string(kSmallSet), from, to);
}

TEST(PublishedRuns, ReadsStrategyMeasurementsAndDefaults) {
  const PublishedSet set = read(std::string(kSmallSet));
  EXPECT_EQ(set.source, "a paper, table 1");
  ASSERT_EQ(set.runs.size(), 2u);
  const PublishedRun& first = set.runs[0];
  EXPECT_EQ(first.trainer, "megatron-2021");
  EXPECT_EQ(set.clusters[first.cluster].name, "dgx-a100");
  EXPECT_EQ(first.strategy.sequence_length, 1024);
  EXPECT_EQ(first.strategy.degrees.data, 4);  // 16 / (2 x 2)
  EXPECT_EQ(first.strategy.schedule, "interleaved-1f1b");
  EXPECT_TRUE(first.uniform_blocks);
  EXPECT_EQ(first.step_time, Seconds(1.42));
  EXPECT_EQ(first.memory, Bytes(41'951'093'064));  // 39.07 x 2^30 = 41951093063.68
  EXPECT_EQ(first.memory_kind, MeasuredMemory::kReserved);
  EXPECT_THAT(first.assumed, ElementsAre("recompute"));
  const PublishedRun& second = set.runs[1];
  EXPECT_EQ(second.strategy.sequence_length, 512);
  EXPECT_EQ(second.strategy.schedule, "1f1b");
  EXPECT_TRUE(second.ran_out_of_memory);
  EXPECT_FALSE(second.memory);
  EXPECT_EQ(second.trap, "another batch");
}

TEST(PublishedRuns, DividesBlocksEvenlyIfPublishedSo) {
  const PublishedSet set = read(std::string(kSmallSet));
  const ModelGraph model = model_from_config(set.models[set.runs[0].model]);
  EXPECT_THAT(blocks_per_stage_of(set.runs[0], model), ElementsAre(2, 2, 2, 2));
  EXPECT_TRUE(blocks_per_stage_of(set.runs[1], model).empty());
  const PublishedSet uneven = read(changed("n_layer = 8", "n_layer = 9"));
  const ModelGraph nine = model_from_config(uneven.models[0]);
  EXPECT_THAT(complaints_of([&] { blocks_per_stage_of(uneven.runs[0], nine); }),
              HasSubstr("small.toml:20:20: 9 blocks cannot be divided evenly among 4 stages"));
}

TEST(PublishedRuns, ChangesAPresetClusterByTheKeysOfTheFile) {
  const PublishedSet set = read(std::string(kSmallSet));
  const Cluster cluster = cluster_from_toml(set.clusters[set.runs[1].cluster]);
  EXPECT_EQ(cluster.nodes.at("dgx").ports, 4);
  EXPECT_EQ(cluster.nodes.at("dgx").device_count, 8);
}

TEST(PublishedRuns, FindsARunByItsId) {
  const PublishedSet set = read(std::string(kSmallSet));
  EXPECT_EQ(find_run(set, "second").id, "second");
  EXPECT_THAT(complaints_of([&] { find_run(set, "secund"); }),
              HasSubstr("unknown run 'secund'\n  hint: did you mean 'second'"));
}

TEST(PublishedRuns, ReportsErrorsAtTheirKeys) {
  const struct {
    const char *from, *to, *complaint;
  } mistakes[] = {
      {"tp = 2", "tp = 3",
       "small.toml:14:8: 'gpus = 16' does not match the parallel sizes, whose product is 6"},
      {"tp = 2", "tq = 2", "small.toml:15:6: tq: unknown key 'tq'"},
      {"step_time =", "step_tme =", "did you mean 'step_time'"},
      {"model = \"tiny\"", "model = \"tinny\"",
       "small.toml:13:9: unknown model 'tinny'\n  hint: did you mean 'tiny'"},
      {"\"megatron-2021\"", "\"megatron-2020\"",
       "small.toml:4:20: unknown trainer 'megatron-2020'\n  hint: did you mean"},
      {"\"1.42 s\"", "1.42", "small.toml:21:13"},
      {"\"39.07 GiB\"", "\"39.07\"", "missing unit"},
      {"\"reserved\"", "\"resident\"", "small.toml:23:15: invalid value \"resident\""},
      {"id = \"second\"", "id = \"first\"", "two runs are called 'first'"},
      {"memory = \"oom\"\n", "", "has no measured value"},
      {"global_batch = 32\n", "", "small.toml:11:1: : missing key 'global_batch'"},
  };
  for (const auto& mistake : mistakes) {
    const std::string text = changed(mistake.from, mistake.to);
    EXPECT_THAT(complaints_of([&] { read(text); }), HasSubstr(mistake.complaint)) << mistake.to;
  }
}

TEST(PublishedRuns, PlaceProblemsOfThePlanAtTheirKeys) {
  const PublishedSet set = read(std::string(kSmallSet));
  const std::vector<Diagnostic> moved = at_positions(
      set.runs[0], {{"--global-batch", "too small", ""}, {"strategy/tp", "too large", ""}});
  EXPECT_EQ(moved[0].where, "small.toml:19:16");
  EXPECT_EQ(moved[0].what, "run 'first', global_batch: too small");
  EXPECT_EQ(moved[1].where, "small.toml:15:6");
}

TEST(PublishedRuns, AreNamedBySetAndId) {
  EXPECT_TRUE(names_published_run("korthikanti-2022#P1604"));
  EXPECT_TRUE(names_published_run("./my.toml#1"));
  EXPECT_FALSE(names_published_run("korthikanti-2022"));
  EXPECT_FALSE(names_published_run("a#b.plan.json"));
}

/// Every preset can be read, and its models and clusters can be loaded.
TEST(PublishedRuns, OfAllPresetsHaveValidModelsAndClusters) {
  for (const std::string& name : published_set_names()) {
    const PublishedSet set = published_set_from_toml(find_published_set(name));
    EXPECT_FALSE(set.source.empty()) << name;
    for (const NamedText& model : set.models) EXPECT_NO_THROW(model_from_config(model)) << name;
    for (const NamedText& cluster : set.clusters)
      EXPECT_NO_THROW(cluster_from_toml(cluster)) << name;
  }
}

}  // namespace
}  // namespace meshwright
