/// Tasks that do nothing.
#pragma once

#include "executor/tasks/task_actions.hpp"

namespace meshwright {

class NoActions : public TaskActions {
 public:
  void begin_step(int) override {}
  void begin_task(const RunTask&) override {}
  void end_task(const RunTask&) override {}
  void compute(const RunTask&, const LayerStep&, const Kernel&) override {}
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

}  // namespace meshwright
