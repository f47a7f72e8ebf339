/// The space of strategies that search() explores.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/error.hpp"
#include "core/cluster/cluster.hpp"
#include "core/model/model_graph.hpp"
#include "core/plan/plan.hpp"
#include "core/schedule/schedule.hpp"
#include "planner/search/search.hpp"

namespace meshwright {

/// One point of the space, without what all points share (batch size, sequence length, dtype).
struct Candidate {
  ParallelDegrees degrees;
  bool sequence_parallel = false;
  int micro_batch = 1;
  int zero = 0;
  /// kBlocks with 0 blocks: the smallest number of blocks that fits in memory.
  Recompute recompute;
  const ScheduleRule* rule = nullptr;
  int parts =
      1;  ///< parts of the model: the stages, or half of them if each part is held by two stages
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

Strategy strategy_of(const Candidate& candidate, const Goal& goal, const FixedChoices& fixed);

/// Default dtype: bf16 if the device supports it, else fp16, else fp32.
Dtype default_dtype(const Cluster& cluster);

/// The request that generates the schedule of a strategy.
ScheduleRequest request_of(const Strategy& strategy);
ScheduleRequest request_of(const ParallelDegrees& degrees, std::int64_t microbatches);
/// Number of model parts of a placement: see Placement::part_of_stage.
int model_parts(const Placement& placement);

/// True if `a` is simpler: smaller tensor, pipeline and chunk degrees, no sequence parallelism,
/// less recomputation, no ZeRO, larger micro-batch, earlier in schedule_rules(). A strict order
/// over distinct candidates; breaks ties between equal step times.
bool is_simpler(const Candidate& a, const Candidate& b);

struct CandidateSpace {
  std::vector<Candidate> candidates;
  /// Candidates rejected during enumeration. A choice that excludes all candidates below it counts
  /// once.
  std::array<std::int64_t, kPruneReasonCount> pruned{};
  /// The first problem reported by check_plan(); explains an empty space if fixed choices
  /// contradict the job.
  std::optional<Diagnostic> first_problem;
  /// The first candidate that was valid but not supported by the trainer, and why.
  std::optional<Diagnostic> first_trainer_problem;
};

/// Tensor degrees up to one node (any if fixed), every pipeline degree that divides the devices,
/// chunk counts that divide the blocks of a device (rounded up), data parallelism over the
/// remaining devices, expert degrees that divide the experts and the ranks of a stage,
/// micro-batches 1, 2, 4, … that divide the batch of a replica, every schedule with
/// `worth_searching`, recomputation, ZeRO 0 and 1; of these, what the trainer can run, if one is
/// set. Throws InputError if the goal is impossible on the cluster.
CandidateSpace enumerate_candidates(const ModelGraph& model, const Cluster& cluster,
                                    const Goal& goal, const FixedChoices& fixed);

}  // namespace meshwright
