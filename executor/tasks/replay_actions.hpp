/// Actions of the replay clock: nothing is computed, ranks only synchronize where they would
/// communicate. This checks that the order of the tasks can be run.
#pragma once

#include <array>
#include <vector>

#include "core/plan/rank_groups.hpp"
#include "executor/tasks/task_actions.hpp"
#include "executor/transport/communicator.hpp"

namespace meshwright {

class ReplayActions final : public TaskActions {
 public:
  ReplayActions(const Strategy& strategy, Communicator& communicator);
  void begin_step(int step) override;
  void begin_task(const RunTask&) override {}
  void end_task(const RunTask&) override {}
  void compute(const RunTask&, const LayerStep&, const Kernel&) override {}
  Ticks communicate(const RunTask& task, const LayerStep& step, const Collective& collective,
                    Ticks ready) override;
  Ticks communicate(const RunTask& task, const Collective& collective,
                    std::span<const RankId> members, Ticks ready) override;
  std::span<const std::byte> outgoing(const RunTask&) override { return {}; }
  std::span<std::byte> incoming(const RunTask&) override { return {}; }

 private:
  Communicator& communicator_;
  AxisGroups groups_;
  std::array<std::int32_t, 8> next_tag_{};  ///< by channel
};

}  // namespace meshwright
