/// The space of plans that search() explores, as a tree: layouts, under each of them pipelines,
/// recomputations and replications. What a choice costs depends on the choices above it only as far
/// as the comments say; bounds of a layout hold for everything below it.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/base/error.hpp"
#include "core/cluster/cluster.hpp"
#include "core/model/model_graph.hpp"
#include "core/plan/plan.hpp"
#include "core/schedule/schedule.hpp"
#include "planner/search/fixed_choices.hpp"
#include "planner/search/search.hpp"

namespace meshwright {

/// For SharedCache.
std::size_t hash_value(const ParallelDegrees& degrees);

/// How a micro-batch is sharded over ranks. Determines the time of every layer, apart from
/// recomputation.
struct Layout {
  ParallelDegrees degrees;  ///< chunks: 1 unless fixed; see PipelineChoice
  bool sequence_parallel = false;
  bool tensor_overlap = false;
  ContextAlgorithm context = ContextAlgorithm::kAllGather;
  int micro_batch = 1;
  friend bool operator==(const Layout&, const Layout&) = default;
};

/// Schedule, and the number of chunks per pipeline rank.
struct PipelineChoice {
  const ScheduleRule* rule = nullptr;
  int chunks = 1;
  int parts = 1;  ///< of the model: the stages, or half of them if two stages hold each part
  std::shared_ptr<const Placement> placement = {};
  bool splits_backward = false;  ///< the schedule has I and W passes
  bool pairs_passes = false;     ///< and pairs of passes that overlap
  /// Heterogeneous clusters: how many blocks stages on devices with less memory leave to the others
  /// (mixed_stages.hpp).
  int relief = 0;
  /// Index in its list of the first choice with the same bound: pipeline_bound() depends on the
  /// placement and on how backward passes are split, not on the order of the passes.
  std::size_t bounded_as = 0;
};

/// How replicas share model state, reduce gradients and gather parameters.
struct Replication {
  int zero = 0;
  DataParallelism data;
  friend bool operator==(const Replication&, const Replication&) = default;
};

/// One plan of the space, but for the batch, the sequence length, the dtype and the stage cut.
struct Candidate {
  Layout layout;
  PipelineChoice pipeline;
  /// kBlocks with 0 blocks: the smallest number of blocks that fits in memory.
  Recompute recompute;
  Replication replication;
};

/// `fixed`: with dtype.
Strategy strategy_of(const Candidate& candidate, const Goal& goal, const FixedChoices& fixed);

/// Default dtype: bf16 if all devices support it, else fp16, else fp32.
Dtype default_dtype(const Cluster& cluster);

/// The request that generates the schedule of a strategy.
ScheduleRequest request_of(const Strategy& strategy);
ScheduleRequest request_of(const ParallelDegrees& degrees, std::int64_t microbatches);
/// Number of model parts of a placement: see Placement::part_of_stage.
int model_parts(const Placement& placement);
std::int64_t microbatches_of(const Layout& layout, const Goal& goal);

/// True if `a` is simpler: fewer axes, smaller parallel sizes, fewer chunks, less recomputation, a
/// lower ZeRO stage, fewer options, larger micro-batches, earlier in schedule_rules(). A strict
/// order over distinct candidates; breaks ties between equal step times.
bool is_simpler(const Candidate& a, const Candidate& b);

class SearchSpace {
 public:
  /// A layout with the choices below it: indices in pipelines() and replications().
  struct Branch {
    Layout layout;
    std::int32_t pipelines = 0, replications = 0;
  };

  std::vector<Branch> branches;
  std::vector<Recompute> recomputes;  ///< below every layout
  std::vector<std::vector<PipelineChoice>> pipeline_lists;
  std::vector<std::vector<Replication>> replication_lists;
  /// Choices rejected during enumeration; one that excludes all candidates below it counts once.
  std::array<std::int64_t, kPruneReasonCount> pruned{};
  /// The first problem reported by check_plan(); explains an empty space if fixed choices
  /// contradict the job.
  std::optional<Diagnostic> first_problem;
  /// The first choice that is not supported by the trainer, and why.
  std::optional<Diagnostic> first_trainer_problem;

  std::span<const PipelineChoice> pipelines(const Branch& branch) const {
    return pipeline_lists[static_cast<std::size_t>(branch.pipelines)];
  }
  std::span<const Replication> replications(const Branch& branch) const {
    return replication_lists[static_cast<std::size_t>(branch.replications)];
  }
  std::int64_t candidates_below(const Branch& branch) const {
    return static_cast<std::int64_t>(pipelines(branch).size() * recomputes.size() *
                                     replications(branch).size());
  }
  /// Every candidate of the space, for brute force in tests.
  std::vector<Candidate> candidates() const;
};

/// - Layouts: tensor-parallel sizes up to 8 or one node, up to four nodes if every sequence has so
///   many ranks (any if fixed), context-, pipeline-, expert- and expert-tensor-parallel sizes that
///   divide what they shard, data parallelism over the remaining devices; with and without sequence
///   parallelism and overlap of tensor-parallel communication; every algorithm of context
///   parallelism; micro-batches up to 8 and powers of two that divide the batch of a replica.
/// - Pipelines: schedules with `worth_searching`, with every number of chunks that is a power of
/// two
///   or divides the blocks of a rank.
/// - Recomputations: none, full, some blocks, modules of Megatron-LM alone and together,
///   torch-selective; of standard attention the attention core.
/// - Replications: ZeRO 0 to 3, shard groups over all replicas or those in a node, gradients
///   reduced after the backward pass or in buckets of PyTorch or Megatron-LM, parameters gathered
///   at the end of a step or during the next one, resharded after the forward pass or not.
/// Of these, what the trainer can run, if one is set. Throws InputError if the goal is impossible
/// on the cluster.
SearchSpace make_space(const ModelGraph& model, const Cluster& cluster, const Goal& goal,
                       const FixedChoices& fixed);

}  // namespace meshwright
