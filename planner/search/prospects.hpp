/// Candidates with stage partition and lower bound. A search sorts them before it simulates any.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/units.hpp"
#include "core/cluster/cluster.hpp"
#include "core/cost/cost_model.hpp"
#include "core/model/model_graph.hpp"
#include "core/plan/plan.hpp"
#include "planner/search/bounds.hpp"
#include "planner/search/candidates.hpp"
#include "planner/search/layer_times.hpp"

namespace meshwright {

/// The arguments of search().
struct SearchJob {
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
  std::shared_ptr<const LayerPasses> layers;  ///< shared by prospects with equal local work
  std::shared_ptr<const std::vector<int>>
      blocks_per_stage;          ///< shared by prospects with equal layers and parts
  bool splits_backward = false;  ///< the schedule has I and W passes
  std::shared_ptr<const StepEndTimes> step_end;  ///< shared if parameters per rank are equal
  /// Lower bound of the simulated step time. Recomputation of some blocks counts as one block.
  Ticks bound;
};

/// The layer times for which stages are balanced.
LayerTimes times_to_cut(const LayerPasses& layers, const Recompute& recompute);

/// step_bound() of the prospect's schedule.
Ticks bound_of(const Prospect& prospect, std::int64_t microbatches);

/// One prospect per candidate, in the same order. Layers are priced once per local shape, and
/// stages are partitioned once per combination of layers and parts.
std::vector<Prospect> appraise(const std::vector<Candidate>& candidates, const SearchJob& job);

}  // namespace meshwright
