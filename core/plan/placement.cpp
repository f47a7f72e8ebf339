// Which layers are on which pipeline rank, and the schedule of a plan.
#include "core/plan/placement.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/plan/manual_placement.hpp"
#include "core/schedule/schedule.hpp"

namespace meshwright {

ScheduleRequest schedule_request_of(const Strategy& strategy) {
  ScheduleRequest request;
  request.devices = strategy.degrees.pipeline;
  request.chunks = strategy.degrees.chunks;
  request.microbatches = static_cast<int>(microbatch_count(strategy));
  return request;
}

Placement placement_of(const Plan& plan) {
  if (!plan.device_of_stage.empty()) return manual_placement(plan);
  const ScheduleRule* rule = find_schedule_rule(plan.strategy.schedule);
  MW_CHECK(rule != nullptr);
  return rule->placement(schedule_request_of(plan.strategy));
}

std::vector<std::vector<LayerId>> layers_of_parts(const Plan& plan, const ModelGraph& model) {
  std::vector<std::vector<LayerId>> parts(plan.blocks_per_stage.size());
  MW_CHECK(static_cast<int>(parts.size()) == part_count(placement_of(plan)));
  std::size_t next = 0;
  const auto is_kind = [&](LayerKind kind) {
    return next < model.layers.size() && model.layers[next].kind == kind;
  };
  for (std::size_t part = 0; part < parts.size(); ++part) {
    if (part == 0 && is_kind(LayerKind::kEmbedding)) parts[part].emplace_back(next++);
    for (int block = 0; block < plan.blocks_per_stage[part]; ++block) {
      MW_CHECK(is_kind(LayerKind::kBlock));
      parts[part].emplace_back(next++);
    }
    if (part + 1 == parts.size() && is_kind(LayerKind::kHead)) parts[part].emplace_back(next++);
  }
  MW_CHECK(next == model.layers.size());
  return parts;
}

std::vector<std::vector<LayerId>> layers_of_stages(const Plan& plan, const ModelGraph& model) {
  const std::vector<std::vector<LayerId>> parts = layers_of_parts(plan, model);
  std::vector<std::vector<LayerId>> stages;
  for (const int part : placement_of(plan).part_of_stage)
    stages.push_back(parts[static_cast<std::size_t>(part)]);
  return stages;
}

Schedule schedule_of(const Plan& plan) {
  if (!plan.device_of_stage.empty()) return manual_schedule(plan);
  const ScheduleRule* rule = find_schedule_rule(plan.strategy.schedule);
  MW_CHECK(rule != nullptr);
  Schedule schedule = rule->generate(schedule_request_of(plan.strategy));
  if (!plan.orders.empty()) schedule.orders = plan.orders;
  return schedule;
}

int part_count(const Placement& placement) {
  int count = 0;
  for (const int part : placement.part_of_stage) count = std::max(count, part + 1);
  return count;
}

}  // namespace meshwright
