#include "planner/sizing/sizing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/search/node_selection.hpp"
#include "planner/sizing/cluster_sizes.hpp"
#include "tests/planner/search/small_jobs.hpp"

namespace meshwright {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

SizingJob sizing_job(const SmallJob& small) {
  return {small.model, small.cluster, *small.cost_model, small.goal, small.fixed};
}

bool fits_on(const SmallJob& small, int gpus, std::int64_t sequence_length) {
  SmallJob sized(small.model, Bytes(0), small.goal);
  sized.cluster = small.cluster;
  sized.goal.gpus = gpus;
  sized.goal.sequence_length = sequence_length;
  sized.fixed = small.fixed;
  return !sized.search({.top = 1, .threads = 1, .is_out_of_time = [] { return true; }})
              .plans.empty();
}

/// On few nodes, and with one schedule and one way to overlap, so that trying all is quick.
SmallJob job_on_nodes(ModelGraph model, std::int64_t megabytes, int nodes, Goal goal) {
  SmallJob small(std::move(model), Bytes(megabytes * 1'000'000), goal);
  small.cluster.groups.front().count = nodes;
  small.fixed.schedule = kDefaultSchedule;
  small.fixed.buckets = GradientBuckets{};
  small.fixed.overlap_gather = false;
  small.fixed.tensor_overlap = false;
  return small;
}

TEST(Sizing, SearchesTheMiddleFirstAndEveryIndexOnce) {
  EXPECT_THAT(middle_first(0), IsEmpty());
  EXPECT_THAT(middle_first(1), ElementsAre(0));
  EXPECT_THAT(middle_first(5), ElementsAre(2, 1, 4, 0, 3));
  EXPECT_THAT(middle_first(7), ElementsAre(3, 1, 5, 0, 2, 4, 6));
}

// Only the nodes of a job are searched; the plan is that of the whole cluster.
TEST(Sizing, FindsThePlansOfSingleSearches) {
  const SmallJob small(small_dense_model(), kPlenty, kSmallGoal);
  std::vector<SizingJob> jobs(3, sizing_job(small));
  jobs[0].goal.gpus = 4;
  jobs[2].goal.gpus = 16;
  const std::vector<SizingResult> results = search_all(jobs, {.threads = 1});
  ASSERT_EQ(results.size(), 3u);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    SmallJob alone(small.model, kPlenty, jobs[i].goal);
    const SearchResult expected = alone.search({.top = 1, .threads = 1, .refines = true});
    ASSERT_TRUE(results[i].search);
    EXPECT_EQ(results[i].search->plans.front().plan, expected.plans.front().plan);
    EXPECT_EQ(results[i].search->plans.front().evaluation.step_time,
              expected.plans.front().evaluation.step_time);
  }
}

TEST(Sizing, KeepsTheProblemsOfImpossibleJobs) {
  const SmallJob small(small_dense_model(), kPlenty, kSmallGoal);
  std::vector<SizingJob> jobs(2, sizing_job(small));
  jobs[1].goal.gpus = device_count(small.cluster) + 1;
  const std::vector<SizingResult> results = search_all(jobs, {.threads = 1});
  EXPECT_TRUE(results[0].search);
  EXPECT_FALSE(results[1].search);
  ASSERT_EQ(results[1].problems.size(), 1u);
  EXPECT_EQ(results[1].problems.front().where, "--gpus");
}

TEST(Sizing, ACanceledRunHasSearchedTheMiddle) {
  const SmallJob small(small_dense_model(), kPlenty, kSmallGoal);
  const std::vector<SizingJob> jobs(3, sizing_job(small));
  std::size_t started = 0;
  const std::vector<SizingResult> results =
      search_all(jobs, {.threads = 1,
                        .canceled = [&] { return started > 1; },
                        .progress = [&](std::size_t done, std::size_t) { started = done + 1; }});
  EXPECT_FALSE(results[0].search && !results[0].search->plans.empty());
  EXPECT_TRUE(results[1].search && !results[1].search->plans.empty());
  EXPECT_FALSE(results[2].search);
}

TEST(Sizing, StopsAtTheFirstResultThatIsEnough) {
  const SmallJob small = job_on_nodes(small_dense_model(), 80'000, 2, kSmallGoal);
  std::vector<SizingJob> jobs(3, sizing_job(small));
  jobs[0].goal.gpus = 4;
  jobs[2].goal.gpus = 16;
  const auto results = search_until(
      jobs, {.threads = 1}, [](const SizingJob& job, const auto&) { return job.goal.gpus == 8; });
  ASSERT_EQ(results.size(), 2u);
  EXPECT_FALSE(results[1].search->plans.empty());
}

// A clock that jumps over the time limit when the first search has started: the second one, of lean
// plans, has its own time.
TEST(Sizing, SearchesLeanPlansIfAllOfThemTakeTooLong) {
  const SmallJob small = job_on_nodes(small_dense_model(), 80'000, 1, kSmallGoal);
  const std::vector<SizingJob> jobs{sizing_job(small)};
  int calls = 0;
  const auto elapsed = [&] { return Seconds(++calls > 4 ? 100 : 0); };
  const std::vector<SizingResult> results =
      search_all(jobs, {.threads = 1, .elapsed = elapsed, .time_limit = Seconds(10)});
  ASSERT_TRUE(results[0].search);
  ASSERT_EQ(results[0].search->plans.size(), 1u);
  const Strategy& strategy = results[0].search->plans.front().plan.strategy;
  EXPECT_EQ(strategy.micro_batch, 1);
  EXPECT_EQ(strategy.recompute.kind, RecomputeKind::kFull);
  EXPECT_FALSE(results[0].search->certificate.proved_optimal);
  EXPECT_EQ(results[0].search->certificate.gap, 1);  // no bound is known
}

TEST(Sizing, TheFewestDevicesAreThoseOfTryingAll) {
  for (const bool experts : {false, true})
    for (const std::int64_t megabytes : {90, 200}) {
      SCOPED_TRACE(testing::Message() << "experts " << experts << ", " << megabytes << " MB");
      const SmallJob small = job_on_nodes(experts ? small_expert_model() : small_dense_model(),
                                          megabytes, 3, {1, 12, 512});
      const std::vector<int> sizes = all_sizes(small.cluster);
      std::optional<int> expected;
      for (const int size : sizes)
        if (!expected && fits_on(small, size, 512)) expected = size;
      const FewestDevices fewest = fewest_devices(sizing_job(small), sizes, {.threads = 1});
      EXPECT_EQ(fewest.devices, expected);
      EXPECT_TRUE(fewest.proved);
      EXPECT_THAT(fewest.problems, IsEmpty());
    }
}

/// Whether a plan fits on any selection of at most `gpus` devices, each searched by itself.
bool fits_on_selected_nodes(const SmallJob& small, int gpus) {
  for (const std::vector<NodeGroup>& nodes : node_selections(small.cluster, gpus)) {
    SmallJob part(small.model, with_nodes(small.cluster, nodes), small.goal);
    part.fixed = small.fixed;
    if (fits_on(part, std::min(gpus, device_count(part.cluster)), small.goal.sequence_length))
      return true;
  }
  return false;
}

// One fast and two slow nodes of four devices.
TEST(Sizing, TheFewestDevicesOfHeterogeneousClustersAreThoseOfTryingAll) {
  for (const std::int64_t megabytes : {90, 150}) {
    SCOPED_TRACE(testing::Message() << megabytes << " MB");
    Cluster mixed = fast_and_slow(1, 2, 0.5);
    for (auto& [name, device] : mixed.devices) device.memory = Bytes(megabytes * 1'000'000);
    SmallJob job(small_dense_model(), mixed, {1, 12, 512});
    job.fixed = job_on_nodes(small_dense_model(), megabytes, 1, job.goal).fixed;
    const std::vector<int> sizes = all_sizes(mixed);
    std::optional<int> expected;
    for (const int size : sizes)
      if (!expected && fits_on_selected_nodes(job, size)) expected = size;
    const FewestDevices fewest = fewest_devices(sizing_job(job), sizes, {.threads = 1});
    EXPECT_EQ(fewest.devices, expected);
    EXPECT_TRUE(fewest.proved);
  }
}

// At most 12 devices are three nodes of four; each row names its nodes.
TEST(Sizing, SelectsNodesOfHeterogeneousClusters) {
  const SmallJob small(small_dense_model(), fast_and_slow(2, 2, 0.1), kSmallGoal);
  std::vector<SizingJob> jobs(2, sizing_job(small));
  jobs[1].goal.gpus = 12;
  const std::vector<SizingResult> results = search_all(jobs, {.threads = 1});
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    SmallJob alone(small.model, small.cluster, jobs[i].goal);
    const RankedPlan expected =
        alone.search({.top = 1, .threads = 1, .selects_nodes = true}).plans.front();
    ASSERT_TRUE(results[i].search);
    EXPECT_EQ(results[i].search->plans.front().nodes, expected.nodes);
    EXPECT_EQ(results[i].search->plans.front().evaluation, expected.evaluation);
  }
}

// Three pipeline ranks: of 1, 2, 4, 8, 16, 24, 32, 40 and 48 devices only 24 and 48 are possible.
// Out of time, sizes at least double: 1, 2, 4, 8, 16, 32 and the last one.
TEST(Sizing, DivisibilityDecidesTheFewestDevicesAndTheTimeLimitWhetherTheyAreProved) {
  SmallJob small = job_on_nodes(small_dense_model(), 80'000, 6, {1, 96, 512});
  small.fixed.pipeline = 3;
  const FewestDevices fewest =
      fewest_devices(sizing_job(small), all_sizes(small.cluster), {.threads = 1});
  EXPECT_EQ(fewest.devices, 24);
  EXPECT_TRUE(fewest.proved);
  const FewestDevices late = fewest_devices(
      sizing_job(small), all_sizes(small.cluster),
      {.threads = 1, .elapsed = [] { return Seconds(2); }, .time_limit = Seconds(1)});
  EXPECT_EQ(late.devices, 48);
  EXPECT_FALSE(late.proved);
}

TEST(Sizing, AJobThatIsImpossibleOnEverySizeHasProblems) {
  const SmallJob small = job_on_nodes(small_dense_model(), 80'000, 1, {1, 1, 512});
  const FewestDevices fewest =
      fewest_devices(sizing_job(small), std::vector{9, 10}, {.threads = 1});
  EXPECT_EQ(fewest.devices, std::nullopt);
  ASSERT_EQ(fewest.problems.size(), 1u);
  EXPECT_EQ(fewest.problems.front().where, "--gpus");
}

TEST(Sizing, TheLongestSequenceIsThatOfTryingAll) {
  for (const std::int64_t megabytes : {130, 250}) {
    SCOPED_TRACE(testing::Message() << megabytes << " MB");
    const SmallJob small = job_on_nodes(small_dense_model(), megabytes, 1, {8, 8, 1024});
    std::optional<std::int64_t> expected;
    for (std::int64_t units = 1; units <= 20; ++units)
      if (fits_on(small, 8, units * kSequenceUnit)) expected = units * kSequenceUnit;
    const LongestSequence longest =
        longest_sequence(sizing_job(small), 20 * kSequenceUnit, {.threads = 1});
    EXPECT_EQ(longest.length, expected);
    EXPECT_EQ(longest.unit, kSequenceUnit);
    EXPECT_EQ(longest.at_limit, expected == 20 * kSequenceUnit);
  }
}

// Three context-parallel ranks share sequences in six parts.
TEST(Sizing, TheUnitOfTheLongestSequenceDividesByFixedSizes) {
  SmallJob small(small_dense_model(), kPlenty, {3, 2, 1024});
  small.fixed.context = 3;
  const LongestSequence longest = longest_sequence(sizing_job(small), 10'000, {.threads = 1});
  EXPECT_EQ(longest.unit, 3 * kSequenceUnit);
  EXPECT_EQ(longest.length, 9 * kSequenceUnit);
  EXPECT_TRUE(longest.at_limit);
}

}  // namespace
}  // namespace meshwright
