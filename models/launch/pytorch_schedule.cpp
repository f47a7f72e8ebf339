#include <fmt/format.h>

#include <algorithm>

#include "core/formats/schedule_csv.hpp"
#include "models/launch/export_formats.hpp"

namespace meshwright {

std::vector<std::string> pytorch_csv_refusals(const Plan& plan) {
  if (plan.strategy.degrees.pipeline == 1) return {"has no schedule without a pipeline"};
  if (!plan.strategy.batch_shares.empty()) return {"has one schedule for all data-parallel ranks"};
  const Schedule schedule = schedule_of(plan);
  std::vector<std::string> reasons;
  const auto refuse = [&](std::string_view what) {
    reasons.push_back(fmt::format("has no {}, which schedule '{}' requires", what, schedule.name));
  };
  if (schedule.placement.routes.size() > 1) refuse("pipelines in two directions");
  if (schedule.slices_per_microbatch > 1) refuse("sequence slices");
  if (schedule.output_barriers > 0) refuse("sharded output layer");
  return reasons;
}

LaunchText pytorch_schedule_csv(const LaunchJob& job) {
  return {write_schedule_csv(schedule_of(job.plan)), {}};
}

}  // namespace meshwright
