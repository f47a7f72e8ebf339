/// The compiler: Plan → TaskGraph, as named passes, each verified after it ran.
///
///   stages        cut the model's layers by Plan::blocks_per_stage
///   layers        each layer class → kernels and tensor/context/expert collectives per pass
///   recompute     forward work that is done again joins the backward passes
///   schedule      micro-batches in the order of the schedule; sends and receives between stages
///   units         passes cut where gradients or parameters travel beside them
///   data-parallel gradient reduction, optimizer step, parameter gathering
///   all ranks     the graph of representatives, copied for every replica
///   memory        resident bytes per rank; what every task acquires, releases and needs meanwhile
///
/// What the graph takes for granted: rows of experts are as ExpertRouting says, on every rank as on
/// the busiest; collectives of tensor, context and expert parallelism are steps of a task and block
/// it, but for what their Overlap hides; those of data parallelism run beside the compute stream,
/// one per stage as soon as its last backward is done, or bucket by bucket. Over nodes of several
/// kinds a pipeline position is as slow as its slowest device. Gradients are accumulated and
/// reduced in fp32. The norm of all gradients is a barrier before the optimizer, but for schedules
/// without a flush: their stages update between passes, and a graph covers several steps.
///
/// Throws InputError with check_plan()'s diagnostics if the plan is not sound. O(tasks); 14 us
/// for the stages of a 96-block GPT, 0.3 s and 0.3 GiB for 12 million tasks of 16,384 ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "core/cluster.hpp"
#include "core/model_graph.hpp"
#include "core/plan.hpp"
#include "core/schedule.hpp"
#include "core/task_graph.hpp"

namespace meshwright {

enum class RankSet : std::uint8_t {
  kRepresentatives,  ///< one rank per pipeline position, with its multiplicity
  kAll
};

struct LoweringOptions {
  RankSet ranks = RankSet::kRepresentatives;
  /// Of a schedule without a flush: how many steps the graph covers (core/weight_versions.hpp); 0:
  /// those of steady_window(). Others cover one.
  int steps = 0;
  friend bool operator==(const LoweringOptions&, const LoweringOptions&) = default;
};

TaskGraph lower(const Plan& plan, const ModelGraph& model, const Cluster& cluster,
                const LoweringOptions& options = {});

/// The part of lower() that does not depend on micro-batch count and schedule: resident memory,
/// parts and works of every stage. For planners that judge memory and work before they order
/// anything. The plan must be sound: check_plan() is the caller's duty here.
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

/// Where the plan's stages lie: as its schedule puts them, or as they are placed by hand.
Placement placement_of(const Plan& plan);
/// Layers of each part of the model (see Placement::part_of_stage), first to last: the embedding
/// with the first part, the head with the last one, blocks as Plan::blocks_per_stage cuts them.
std::vector<std::vector<LayerId>> layers_of_parts(const Plan& plan, const ModelGraph& model);
/// The same by stage.
std::vector<std::vector<LayerId>> layers_of_stages(const Plan& plan, const ModelGraph& model);

/// True if lower() may cut passes into tasks of some layers each, or adds buffers to them, so that
/// the works of lower_stages() are not the tasks of the plan.
constexpr bool cuts_passes(const Strategy& strategy) {
  const DataParallelism& data = strategy.data_parallelism;
  return strategy.zero >= 2 || data.buckets.rule != BucketRule::kNone || data.overlap_gather ||
         data.kind == DataParallelKind::kParameterServer ||
         data.kind == DataParallelKind::kAsyncParameterServer ||
         data.kind == DataParallelKind::kOneProcess;
}

/// By pipeline position: the index in Cluster::groups of the nodes that decide its pace. Empty
/// where all nodes are of one kind.
std::vector<std::int32_t> node_kinds_of(const Strategy& strategy, const Cluster& cluster);

}  // namespace meshwright
