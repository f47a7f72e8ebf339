/// Several searches of one `plan`: every model on every cluster at every size.
#pragma once

#include <optional>
#include <vector>

#include "cli/plan/plan_search.hpp"
#include "core/base/error.hpp"

namespace meshwright {

struct SizingPoint {
  PlanSearch search;
  bool is_searched = false;          ///< false: impossible, or interrupted before its turn
  std::vector<Diagnostic> problems;  ///< why it is impossible
  bool is_on_front = false;          ///< of time, GPUs and cost, among the points of the same model
  bool meets_deadline = false;
};

struct Sizing {
  std::vector<SizingPoint> points;  ///< by model, cluster and size, in the order of the flags
  /// The point with the fewest GPUs that meets the deadline. Without a deadline, or if no point
  /// meets it, the one with the fastest plan. Empty with several models, or if no point has a plan.
  std::optional<std::size_t> recommended;
  Seconds time;
};

/// InputError if all points are impossible for the same reason.
Sizing size_clusters(const PlanFlags& flags, const PlanRequest& request,
                     const std::vector<PlanModel>& models,
                     const std::vector<PlanCluster>& clusters);

/// Sets `recommended`, and what points are relative to the deadline and to each other.
void judge_points(Sizing& sizing, const PlanRequest& request);

/// That the best plan uses: on heterogeneous clusters fewer than Goal::gpus if it is faster so.
int gpus_of(const SizingPoint& point);
/// Of the best plan; nullopt if there is none, or if failures never let it complete.
std::optional<Seconds> time_of(const SizingPoint& point);

}  // namespace meshwright
