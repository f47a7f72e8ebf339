#include "core/plan/manual_placement.hpp"

#include <algorithm>
#include <numeric>

#include "core/base/check.hpp"

namespace meshwright {

Placement manual_placement(const Plan& plan) {
  Placement placement;
  placement.devices = plan.strategy.degrees.pipeline;
  std::vector<StageId> route;
  for (const int device : plan.device_of_stage) {
    route.emplace_back(placement.device_of_stage.size());
    placement.device_of_stage.emplace_back(device);
  }
  placement.part_of_stage.resize(route.size());
  std::iota(placement.part_of_stage.begin(), placement.part_of_stage.end(), 0);
  placement.routes.push_back(std::move(route));
  return placement;
}

Schedule manual_schedule(const Plan& plan) {
  Schedule schedule;
  schedule.name = plan.strategy.schedule;
  schedule.microbatch_count = static_cast<int>(microbatch_count(plan.strategy));
  schedule.placement = manual_placement(plan);
  schedule.route_of_microbatch.assign(static_cast<std::size_t>(schedule.microbatch_count), 0);
  schedule.orders.resize(static_cast<std::size_t>(schedule.placement.devices));
  const int stages = static_cast<int>(plan.device_of_stage.size());
  const auto append = [&](int stage, Pass pass, int microbatch) {
    schedule.orders[schedule.placement.device_of_stage[static_cast<std::size_t>(stage)].index()]
        .push_back({StageId(stage), pass, MicrobatchId(microbatch)});
  };
  const ManualOrder order = find_schedule_rule(schedule.name)->manual_order;
  if (order == ManualOrder::kMicrobatchByMicrobatch) {
    for (int m = 0; m < schedule.microbatch_count; ++m) {
      for (int s = 0; s < stages; ++s) append(s, Pass::kForward, m);
      for (int s = stages - 1; s >= 0; --s) append(s, Pass::kBackward, m);
    }
    return schedule;
  }
  MW_CHECK(order == ManualOrder::kForwardsThenBackwards);
  for (int s = 0; s < stages; ++s)
    for (int m = 0; m < schedule.microbatch_count; ++m) append(s, Pass::kForward, m);
  for (int s = stages - 1; s >= 0; --s)
    for (int m = 0; m < schedule.microbatch_count; ++m) append(s, Pass::kBackward, m);
  return schedule;
}

}  // namespace meshwright
