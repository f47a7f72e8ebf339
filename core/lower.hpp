/// The compiler: Plan → TaskGraph, as named passes, each verified after it ran.
///
///   stages        cut the model's layers by Plan::blocks_per_stage
///   layers        each layer class → kernels and tensor/context/expert collectives per pass
///   recompute     forward work that is done again joins the backward passes
///   schedule      micro-batches in the order of the schedule; sends and receives between stages
///   data-parallel gradient reduction, optimizer step, parameter gathering
///   memory        resident bytes per rank; what every task acquires, releases and needs meanwhile
///
/// Throws InputError with check_plan()'s diagnostics if the plan is not sound.
#pragma once

#include <cstdint>

#include "core/cluster.hpp"
#include "core/model_graph.hpp"
#include "core/plan.hpp"
#include "core/task_graph.hpp"

namespace meshwright {

enum class RankSet : std::uint8_t {
  kRepresentatives,  ///< one rank per pipeline position, with its multiplicity
  kAll
};

struct LoweringOptions {
  RankSet ranks = RankSet::kRepresentatives;
  friend bool operator==(const LoweringOptions&, const LoweringOptions&) = default;
};

TaskGraph lower(const Plan& plan, const ModelGraph& model, const Cluster& cluster,
                const LoweringOptions& options = {});

/// The part of lower() that does not depend on micro-batch count and schedule: resident memory,
/// parts and works of every stage. For planners that judge memory and work before they order
/// anything.
struct StageWorks {
  WorkId forward, backward;                ///< in `works`
  WorkId backward_input, backward_weight;  ///< the backward pass in two
  friend bool operator==(const StageWorks&, const StageWorks&) = default;
};
struct LoweredStages {
  std::vector<WorkPart> parts;
  std::vector<Work> works;
  std::vector<StageWorks> stages;       ///< by stage
  std::vector<MemoryAmounts> resident;  ///< by pipeline position
  friend bool operator==(const LoweredStages&, const LoweredStages&) = default;
};
LoweredStages lower_stages(const Plan& plan, const ModelGraph& model, const Cluster& cluster);

}  // namespace meshwright
