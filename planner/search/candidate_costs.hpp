/// Prices, stage cuts and lower bounds of candidates. Candidates share most of them: layers are
/// priced once per shape, stages are cut once per shape and number of parts.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/units.hpp"
#include "core/lowering/lower.hpp"
#include "core/plan/job_groups.hpp"
#include "core/schedule/pass_order.hpp"
#include "core/schedule/schedule.hpp"
#include "planner/search/bounds.hpp"
#include "planner/search/layer_times.hpp"
#include "planner/search/layout_bounds.hpp"
#include "planner/search/search_job.hpp"
#include "planner/search/shared_cache.hpp"
#include "planner/search/space.hpp"

namespace meshwright {

/// The layers of a layout with one kind of recomputation.
using SharedLayers = std::shared_ptr<const LayerCosts>;

/// Blocks per part, by PipelineChoice::relief; all larger ones repeat the last.
using StageCuts = std::vector<std::vector<int>>;

/// Rule, devices, chunks and micro-batches.
using ScheduleKey = std::tuple<const ScheduleRule*, int, int, std::int64_t>;
inline ScheduleKey schedule_key(const ScheduleRule& rule, const ScheduleRequest& request) {
  return {&rule, request.devices, request.chunks, request.microbatches};
}

/// Layouts with equal shapes have the same local work.
struct LayerShape {
  ParallelDegrees degrees;  ///< of axes whose collectives are steps of a pass
  bool sequence_parallel = false, tensor_overlap = false;
  ContextAlgorithm context = {};
  int micro_batch = 1;
  std::array<int, 3 * kLayerGroups.size()> groups{};  ///< shapes of the process groups
  std::uint32_t recompute = 0;
  friend bool operator==(const LayerShape&, const LayerShape&) = default;
};
std::size_t hash_value(const LayerShape& shape);

/// Costs of layers by name of the node, for searches of the same job on parts of one cluster.
struct LayerPrices {
  SharedCache<std::tuple<LayerShape, Dtype, std::string>, LayerCosts> by_node;
};

class CandidateCosts {
 public:
  explicit CandidateCosts(const SearchJob& job);

  /// `recompute` matters only if it recomputes operators.
  SharedLayers layers(const Layout& layout, const Recompute& recompute);

  /// Blocks per part: the fastest slowest stage, or an even cut if the trainer has no other.
  std::shared_ptr<const std::vector<int>> stage_cut(const SharedLayers& layers,
                                                    const PipelineChoice& pipeline,
                                                    const Recompute& recompute);

  /// True if the stage cut is that of the pipeline with less relief.
  bool repeats_cut(const SharedLayers& layers, const PipelineChoice& pipeline,
                   const Recompute& recompute);

  /// Lower bounds of the step time of everything below a layout, or below a recomputation of it:
  /// every device is busy all the time. `shares_ends`: the pipeline ranks may share the embedding
  /// and the head. The rough one does not price the layers of the layout (layout_bounds.hpp).
  Ticks rough_layout_bound(const Layout& layout, bool shares_ends);
  Ticks layout_bound(const Layout& layout, const LayerCosts& layers, const Recompute& recompute,
                     bool shares_ends) const;
  /// step_bound() without the end of the step. Some recomputed blocks count as one block.
  Ticks pipeline_bound(const Layout& layout, const SharedLayers& layers,
                       const PipelineChoice& pipeline, const Recompute& recompute);
  /// Makespan of the schedule itself, with messages that never wait for others; of some blocks,
  /// whose number is not chosen yet, one is recomputed. O(passes of one pipeline).
  Ticks schedule_time(const Candidate& candidate);
  /// Of a candidate whose gradients are reduced layer by layer after every backward pass (ZeRO 2
  /// and 3): the time of these collectives on the rank with the most; otherwise 0. O(blocks).
  Ticks reduction_bound(const Candidate& candidate);
  /// True under ZeRO 2 if every layer fills a bucket, as if there were no buckets.
  bool fills_buckets(const Candidate& candidate);
  /// step_bound(); `scheduled`: a lower bound of the time of all passes.
  Ticks candidate_bound(const Candidate& candidate, Ticks scheduled);

  Plan plan_of(const Candidate& candidate);

  std::shared_ptr<const Schedule> schedule_of(const ScheduleRule& rule,
                                              const ScheduleRequest& request);

 private:
  std::shared_ptr<const StageCuts> stage_cuts(const SharedLayers& layers,
                                              const PipelineChoice& pipeline,
                                              const Recompute& recompute);
  LayerShape shape_of(const Layout& layout, const Recompute& recompute) const;
  PerGroup<GroupShape> groups_of(const Layout& layout) const;
  /// On one type of node; `kind`: index of its group.
  LayerCosts price_on_nodes(const LayerShape& shape, const Strategy& strategy, std::size_t kind,
                            const LayerCosts* without_recomputation) const;
  LayerCosts price_layers(const LayerShape& shape, const Layout& layout,
                          const Recompute& recompute);
  /// The end of a step with the smallest number of micro-batches that the schedule supports.
  struct KnownStepEnd {
    StepEndTimes end = {};
    std::int64_t microbatches = 1;
    Ticks more_communication = {};                ///< for as many micro-batches more
    std::vector<Ticks> more_beside_gathers = {};  ///< likewise
    std::vector<Ticks> more_reductions = {};      ///< likewise
  };
  /// Of the gradients of one layer, by stream.
  using ReductionTimes = std::array<Ticks, kStreamCount>;
  std::vector<ReductionTimes> price_reductions(const Candidate& candidate,
                                               const LayerCosts& layers) const;
  KnownStepEnd step_end(const Candidate& candidate, const std::vector<int>& cut);
  KnownStepEnd price_step_end(const Candidate& candidate, const std::vector<int>& cut) const;
  const ScheduleRule& rule_with_shortest_step(const PipelineChoice& pipeline,
                                              const ParallelDegrees& degrees,
                                              std::int64_t& microbatches) const;
  std::vector<PassTimes> parts_of(const SharedLayers& layers, const PipelineChoice& pipeline,
                                  const Recompute& recompute);
  std::shared_ptr<const Schedule> schedule_of(const Candidate& candidate);
  /// Of a pipeline rank to its neighbors, which form a ring.
  struct MessageTimes {
    Ticks to_next, to_previous;
  };
  std::vector<MessageTimes> price_messages(const Layout& layout) const;
  /// Adds the time from the end of a pass to the start of its successor on another device.
  void add_messages(const Candidate& candidate, StageTimes& times);

  const SearchJob& job_;
  const Strategy fixed_;                ///< with the default of every choice that is not fixed
  std::optional<LayoutBounds> bounds_;  ///< on homogeneous clusters
  SharedCache<LayerShape, LayerCosts> layers_;
  /// Heterogeneous clusters: by layers on all types of nodes.
  SharedCache<std::pair<SharedLayers, ParallelDegrees>, LayerCosts> mixed_layers_;
  /// By layers, parts, recomputation and shared ends; on heterogeneous clusters by placement.
  SharedCache<std::tuple<SharedLayers, int, bool, bool, const Placement*>, StageCuts> cuts_;
  /// Everything that the end of a step depends on; equal placements are shared.
  using StepEndKey = std::tuple<ParallelDegrees, bool, std::shared_ptr<const Placement>, bool, bool,
                                int, std::int64_t, bool, bool, std::vector<int>>;
  SharedCache<StepEndKey, KnownStepEnd> step_ends_;
  /// By sizes and ranks that share a shard: the times of the reductions of every layer class.
  SharedCache<std::pair<ParallelDegrees, int>, std::vector<ReductionTimes>> reductions_;
  SharedCache<ScheduleKey, Schedule> schedules_;
  SharedCache<std::shared_ptr<const Schedule>, std::optional<PassOrder>> pass_orders_;
  /// By sizes, sequence parallelism and micro-batch; on homogeneous clusters.
  SharedCache<std::tuple<ParallelDegrees, bool, int>, std::vector<MessageTimes>> messages_;
};

}  // namespace meshwright
