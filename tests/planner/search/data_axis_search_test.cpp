// Searches with given data-parallel options: bounds must hold, and memory must be that of the full
// graph.
#include <gtest/gtest.h>

#include "planner/search/candidate_costs.hpp"
#include "planner/search/search.hpp"
#include "tests/planner/search/small_jobs.hpp"

namespace meshwright {
namespace {

struct Given {
  int zero = 0;
  DataParallelism data;
};

std::vector<Given> options() {
  std::vector<Given> list;
  for (const int zero : {0, 1, 2, 3}) {
    Given given{.zero = zero, .data = {}};
    list.push_back(given);
    given.data.offload_optimizer = true;
    list.push_back(given);
    if (zero == 3) continue;
    given.data.buckets = {BucketRule::kBytes, Bytes(4'000'000)};
    given.data.overlap_gather = zero > 0;
    list.push_back(given);
    given.data.offload_optimizer = false;
    list.push_back(given);
  }
  for (const auto kind : {DataParallelKind::kRing, DataParallelKind::kParameterServer,
                          DataParallelKind::kAsyncParameterServer, DataParallelKind::kOneProcess}) {
    Given given{.zero = 0, .data = {}};
    given.data.kind = kind;
    list.push_back(given);
  }
  return list;
}

void fix(const Given& given, FixedChoices& fixed) {
  fixed.zero = given.zero;
  fixed.data_parallelism.kind = given.data.kind;
  fixed.buckets = given.data.buckets;
  fixed.overlap_gather = given.data.overlap_gather;
  fixed.offload_optimizer = given.data.offload_optimizer;
  fixed.reshard_after_forward = given.data.reshard_after_forward;
  fixed.shard_ranks = 0;
}

// Fastest of all candidates that fit, simulated one by one, with plenty of memory and with so
// little that most do not fit.
TEST(DataAxisSearch, FindsWhatSimulatingEverythingFinds) {
  for (const Given& given : options()) {
    SCOPED_TRACE(testing::Message()
                 << "zero " << given.zero << ", " << name_of(given.data.kind) << ", bucket "
                 << to_text(given.data.buckets) << ", offload " << given.data.offload_optimizer);
    for (const Bytes memory : {kPlenty, Bytes(3'000'000'000)}) {
      SmallJob small(small_dense_model(), memory, kSmallGoal);
      small.fixed.recompute = Recompute{};
      small.fixed.context = 1;
      small.fixed.tensor_overlap = false;
      fix(given, small.fixed);
      const SearchJob job = small.job();
      CandidateCosts costs(job);
      std::optional<Ticks> fastest;
      for (const Candidate& candidate : small.candidates()) {
        const Evaluation e = small.evaluate(costs.plan_of(candidate));
        EXPECT_LE(costs.candidate_bound(candidate, Ticks()), e.step_time);
        if (fits_in_memory(e) && (!fastest || e.step_time < *fastest)) fastest = e.step_time;
      }
      const SearchResult found = small.search({.top = 1, .threads = 1});
      ASSERT_EQ(found.plans.empty(), !fastest.has_value());
      if (fastest) {
        EXPECT_EQ(found.plans.front().evaluation.step_time, *fastest);
        EXPECT_EQ(found.plans.front().plan.strategy.data_parallelism, given.data);
      }
    }
  }
}

}  // namespace
}  // namespace meshwright
