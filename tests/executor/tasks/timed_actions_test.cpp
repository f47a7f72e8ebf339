#include "executor/tasks/timed_actions.hpp"

#include <gtest/gtest.h>

#include "tests/executor/tasks/no_actions.hpp"
#include "tests/executor/tasks/timed_gelu.hpp"

namespace meshwright {
namespace {

/// prepare() takes 3 s and a kernel 5 s by a fake clock.
class SlowActions final : public NoActions {
 public:
  static inline Ticks now;
  void prepare(const RunTask&, const Collective&) override { now += 3 * to_ticks(Seconds(1)); }
  void compute(const RunTask&, const LayerStep&, const Kernel&) override {
    now += 5 * to_ticks(Seconds(1));
  }
};

// With several ranks the gradient norm is computed before the collective that sums it: as on one
// rank, the update takes 3 + 5 s. The next update does not include it again.
TEST(TimedActions, AddTheGradientNormToTheOptimizerStep) {
  SlowActions actions;
  TimedActions timed(actions, [] { return SlowActions::now; });
  RunTask update;
  update.kind = TaskKind::kOptimizer;
  const Kernel kernel = gelu(64);
  timed.prepare({}, {});
  for (int step = 0; step < 2; ++step) {
    timed.compute(update, {}, kernel);
    timed.end_task(update);
  }
  const std::vector<TimedKernels> all = timed.take();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].times, seconds({8, 5}));
}

}  // namespace
}  // namespace meshwright
