// Properties of every plan (plan_properties.hpp) on 2,000 plans drawn at random from fixed seeds.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/properties/plan_properties.hpp"

namespace meshwright {
namespace {

constexpr int kShards = 20;
constexpr int kPlansPerShard = 100;
constexpr int kMostDrawn = 20 * kPlansPerShard;  ///< for the valid plans of a shard

const JobParts& parts() {
  static const JobParts loaded = load_job_parts();
  return loaded;
}

/// Calls visit(seed, job) for the valid plans of a shard.
template <class Visit>
void for_each_plan(int shard, const Visit& visit) {
  int valid = 0;
  for (std::uint64_t i = 0; valid < kPlansPerShard; ++i) {
    ASSERT_LT(i, kMostDrawn) << "too few of the drawn plans are valid";
    const std::uint64_t seed = static_cast<std::uint64_t>(shard) << 32 | i;
    Choices choices(seed);
    const RandomJob job = draw_job(parts(), choices, {});
    if (!check_plan(job.plan, job.model->graph, job.cluster->cluster).empty()) continue;
    ++valid;
    visit(seed, job);
  }
}

/// Each shard is a test of its own, so that ctest can run them in parallel.
class RandomPlans : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Shards, RandomPlans, testing::Range(0, kShards));

TEST_P(RandomPlans, HaveTheProperties) {
  for_each_plan(GetParam(), [](std::uint64_t seed, const RandomJob& job) {
    const PropertyResult result =
        check_properties(job, {.ranks = 32, .reads_all_texts = seed % 8 == 0});
    EXPECT_TRUE(result.is_checked) << "seed " << seed << ": " << to_text(job);
    for (const std::string& broken : result.broken)
      ADD_FAILURE() << "seed " << seed << ": " << to_text(job) << "\n" << broken;
  });
}

const std::vector<RandomJob>& all_plans() {
  static const std::vector<RandomJob> all = [] {
    std::vector<RandomJob> jobs;
    for (int shard = 0; shard < kShards; ++shard)
      for_each_plan(shard, [&](std::uint64_t, const RandomJob& job) { jobs.push_back(job); });
    return jobs;
  }();
  return all;
}

/// The words of one choice among all plans.
std::set<std::string> words_of_plans(
    const std::function<std::string(const RandomJob& job, const Strategy& strategy)>& word) {
  std::set<std::string> words;
  for (const RandomJob& job : all_plans()) words.insert(word(job, job.plan.strategy));
  return words;
}

// Every value of every choice is among the valid plans; sizes above 1 of every axis, too.
TEST(RandomPlansTogether, UseEveryModelClusterAndTrainer) {
  EXPECT_EQ(
      words_of_plans([](const RandomJob& job, auto&) { return job.model->config.name; }).size(),
      parts().models.size());
  EXPECT_EQ(
      words_of_plans([](const RandomJob& job, auto&) { return job.cluster->toml.name; }).size(),
      parts().clusters.size());
  std::set<std::string> trainers;
  for (const Trainer& trainer : parts().trainers) trainers.insert(trainer.name);
  EXPECT_EQ(words_of_plans([](const RandomJob& job, auto&) { return job.trainer->name; }),
            trainers);
}

TEST(RandomPlansTogether, UseEverySchedule) {
  const std::vector<std::string> all = schedule_names();
  EXPECT_EQ(words_of_plans([](auto&, const Strategy& s) { return s.schedule; }),
            std::set<std::string>(all.begin(), all.end()));
}

TEST(RandomPlansTogether, UseEveryAxisAndOption) {
  const auto count = [](const auto& word) {
    return words_of_plans([&](const RandomJob& job, const Strategy& s) {
             return fmt::format("{}", word(job.plan, s));
           })
        .size();
  };
  for (const ParallelSize& size : kParallelSizes)
    EXPECT_GE(count([&](const Plan&, const Strategy& s) { return s.degrees.*size.size; }), 2U)
        << size.name;
  EXPECT_EQ(count([](auto&, auto& s) { return s.zero; }), 4U);
  EXPECT_EQ(count([](auto&, auto& s) { return name_of(s.data_parallelism.kind); }),
            static_cast<std::size_t>(kDataParallelKindCount));
  EXPECT_EQ(count([](auto&, auto& s) { return name_of(s.data_parallelism.algorithm); }),
            static_cast<std::size_t>(kCollectiveAlgorithmCount));
  EXPECT_EQ(count([](auto&, auto& s) { return name_of(s.model_parallelism.context); }),
            static_cast<std::size_t>(kContextAlgorithmCount));
  EXPECT_EQ(count([](auto&, auto& s) { return name_of(s.optimizer); }),
            static_cast<std::size_t>(kOptimizerKindCount));
  EXPECT_EQ(count([](auto&, auto& s) { return name_of(s.dtype); }),
            static_cast<std::size_t>(kDtypeCount));
  EXPECT_EQ(count([](auto&, auto& s) { return static_cast<int>(s.recompute.kind); }), 6U);
  for (const auto& is_used :
       {std::function<bool(const Plan&, const Strategy&)>(
            [](auto&, auto&s) { return s.sequence_parallel; }),
        {[](auto&, auto&s) { return s.model_parallelism.tensor_overlap; }},
        {[](auto&, auto&s) { return s.model_parallelism.routing.overlap; }},
        {[](auto&, auto&s) { return s.model_parallelism.routing.node_limit > 0; }},
        {[](auto&, auto&s) { return s.data_parallelism.overlap_gather; }},
        {[](auto&, auto&s) { return s.data_parallelism.offload_optimizer; }},
        {[](auto&, auto&s) { return s.data_parallelism.shard_ranks > 0; }},
        {[](auto&plan, auto&) { return plan.orders.empty(); }},
        {[](auto&plan, auto&) { return plan.device_of_stage.empty(); }}})
    EXPECT_EQ(count(is_used), 2U);
}

}  // namespace
}  // namespace meshwright
