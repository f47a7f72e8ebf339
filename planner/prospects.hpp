/// Candidates with a stage cut and a bound: what a search orders before it simulates anything.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/cluster.hpp"
#include "core/cost_model.hpp"
#include "core/model_graph.hpp"
#include "core/plan.hpp"
#include "core/units.hpp"
#include "planner/bounds.hpp"
#include "planner/candidates.hpp"
#include "planner/layer_times.hpp"

namespace meshwright {

/// What search() was asked.
struct Job {
  const ModelGraph& model;
  const Cluster& cluster;
  const CostModel& cost_model;
  Goal goal;
  FixedChoices fixed;
  int threads = 1;
};

inline std::int64_t microbatches_of(const Candidate& candidate, const Goal& goal) {
  return goal.global_batch / (std::int64_t{candidate.micro_batch} * candidate.degrees.data);
}

struct Prospect {
  Candidate candidate;
  std::shared_ptr<const LayerPasses> layers;  ///< shared by all with equal local work
  std::shared_ptr<const std::vector<int>>
      blocks_per_stage;                          ///< shared by all with equal layers and parts
  bool splits_backward = false;                  ///< its schedule holds I and W passes
  std::shared_ptr<const StepEndTimes> step_end;  ///< shared by all with equal parameters per rank
  /// No simulation of it is faster. Recomputation of some blocks counts as one block at least.
  Ticks bound;
};

/// Layer times that a stage cut is worked out for.
LayerTimes times_to_cut(const LayerPasses& layers, const Recompute& recompute);

/// step_bound() of its schedule.
Ticks bound_of(const Prospect& prospect, std::int64_t microbatches);

/// One prospect per candidate, in their order. Layers are priced once for candidates with equal
/// local shapes, blocks cut once for equal layers and stages.
std::vector<Prospect> appraise(const std::vector<Candidate>& candidates, const Job& job);

}  // namespace meshwright
