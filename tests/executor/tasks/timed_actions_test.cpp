#include "executor/tasks/timed_actions.hpp"

#include <gtest/gtest.h>

#include "executor/tasks/task_actions.hpp"

namespace meshwright {
namespace {

Kernel gelu(std::int64_t bytes) {
  Kernel kernel;
  kernel.routine = Routine::kGelu;
  kernel.memory_traffic = Bytes(bytes);
  return kernel;
}
std::vector<Ticks> seconds(const std::vector<int>& values) {
  std::vector<Ticks> times;
  for (const int value : values) times.push_back(value * to_ticks(Seconds(1)));
  return times;
}

/// prepare() takes 3 s and a kernel 5 s by a fake clock.
class SlowActions final : public TaskActions {
 public:
  static inline Ticks now;
  void begin_step(int) override {}
  void begin_task(const RunTask&) override {}
  void end_task(const RunTask&) override {}
  void prepare(const RunTask&, const Collective&) override { now += 3 * to_ticks(Seconds(1)); }
  void compute(const RunTask&, const LayerStep&, const Kernel&) override {
    now += 5 * to_ticks(Seconds(1));
  }
  Ticks communicate(const RunTask&, const LayerStep&, const Collective&, Ticks ready) override {
    return ready;
  }
  Ticks communicate(const RunTask&, const Collective&, std::span<const RankId>,
                    Ticks ready) override {
    return ready;
  }
  std::span<const std::byte> outgoing(const RunTask&) override { return {}; }
  std::span<std::byte> incoming(const RunTask&) override { return {}; }
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
