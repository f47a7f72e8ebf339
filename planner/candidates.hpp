/// The space of strategies that search() looks through.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/cluster.hpp"
#include "core/error.hpp"
#include "core/model_graph.hpp"
#include "core/plan.hpp"
#include "core/schedule.hpp"
#include "planner/search.hpp"

namespace meshwright {

/// One point of the space, without what all points share (batch, sequence, number formats).
struct Candidate {
  ParallelDegrees degrees;
  bool sequence_parallel = false;
  int micro_batch = 1;
  int zero = 0;
  /// kBlocks with 0 blocks: as few blocks as make it fit.
  Recompute recompute;
  const ScheduleRule* rule = nullptr;
  int parts =
      1;  ///< pieces the model is cut into: stages, or half of them where all are held twice
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

Strategy strategy_of(const Candidate& candidate, const Goal& goal, const FixedChoices& fixed);

/// What to compute in where nothing is said: bf16 where the device has it, else fp16, else fp32.
Dtype default_dtype(const Cluster& cluster);

/// What a strategy's schedule is generated from.
ScheduleRequest request_of(const Strategy& strategy);
ScheduleRequest request_of(const ParallelDegrees& degrees, std::int64_t microbatches);
/// Parts of the model under a placement: see Placement::part_of_stage.
int model_parts(const Placement& placement);

/// True if `a` is the plainer of two: smaller tensor, pipeline and chunk degrees, no sequence
/// parallelism, less recomputation, no ZeRO, larger micro-batch, earlier in schedule_rules(). A
/// strict order over distinct candidates; decides between equal step times.
bool is_simpler(const Candidate& a, const Candidate& b);

struct CandidateSpace {
  std::vector<Candidate> candidates;
  /// What was turned down while listing. A choice that fails whatever follows it counts once.
  std::array<std::int64_t, kPruneReasonCount> pruned{};
  /// What was wrong with the first one that was turned down by check_plan(); says why nothing is
  /// left when fixed choices contradict the job.
  std::optional<Diagnostic> first_problem;
};

/// Tensor degrees up to one node (any if fixed), every pipeline degree that divides the devices,
/// chunk counts that divide the blocks of a device (rounded up), data parallelism for the rest,
/// expert degrees that divide the experts and the ranks of a stage, micro-batches 1, 2, 4, … that
/// divide a replica's batch, every schedule worth searching, recomputation, ZeRO 0 and 1.
/// Throws InputError if the goal is not possible on the cluster at all.
CandidateSpace enumerate_candidates(const ModelGraph& model, const Cluster& cluster,
                                    const Goal& goal, const FixedChoices& fixed);

}  // namespace meshwright
