/// The choices below a layout, as lists that layouts share: pipelines depend on the pipeline size
/// and the number of micro-batches, replications on the replicas and their nodes, recomputations on
/// the job only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "core/trainer/trainer_abilities.hpp"
#include "planner/search/space.hpp"

namespace meshwright {

/// `fixed`, or all of `free`.
template <class Value>
std::vector<Value> choices(const std::optional<Value>& fixed, std::vector<Value> free) {
  if (fixed) return {*fixed};
  return free;
}

/// Devices of the largest node.
int largest_node(const Cluster& cluster);

/// A plan with this layout and replication, the default of every other choice, and one micro-batch.
Plan layout_probe(const Layout& layout, const Replication& replication, const Goal& goal,
                  const FixedChoices& fixed, int blocks);

/// Fills the lists of a space, and counts what it turns down. Refers to its arguments.
class ChoiceLists {
 public:
  ChoiceLists(const ModelGraph& model, const Cluster& cluster, const Goal& goal,
              const FixedChoices& fixed, SearchSpace& space);

  void list_recomputes();
  /// Indices in the lists of the space.
  std::int32_t pipelines_of(const Layout& layout);
  std::int32_t replications_of(const Layout& layout);

  void turn_down(PruneReason reason) { ++space_.pruned[static_cast<std::size_t>(reason)]; }
  /// False, with the first problem noted, if check_plan() rejects the plan.
  bool is_valid(const Plan& plan);
  /// False, counted and noted, if the trainer lacks an ability of this kind that the plan needs.
  bool can_run(const Plan& plan, bool (*is_of_kind)(Ability));

 private:
  struct ScheduleTraits {
    bool splits_backward = true, pairs_passes = true;  ///< unless known: weaker bounds
  };
  static ScheduleTraits traits_of(const ScheduleRule& rule);
  const ScheduleTraits& schedule_traits(const ScheduleRule& rule);
  std::vector<PipelineChoice> list_pipelines(const Layout& layout);
  bool is_for_one_device(const ScheduleRule& rule, bool is_replicated);
  bool accepts_model(const ScheduleRequest& request, const ScheduleRule& rule, int parts);
  std::shared_ptr<const Placement> placement_of(const ScheduleRule& rule,
                                                const ScheduleRequest& request);
  std::vector<int> chunk_counts(const ScheduleRule& rule, const ScheduleRequest& request) const;

  bool is_possible(const Recompute& recompute);
  std::vector<std::uint32_t> module_sets();

  std::vector<Replication> list_replications(const Layout& layout);
  bool is_possible(const Layout& layout, const Replication& replication);
  std::vector<int> shard_sizes(const ParallelDegrees& degrees, int zero) const;
  std::vector<GradientBuckets> bucket_choices(int zero, bool is_reduced) const;
  std::vector<bool> gather_choices(int zero, bool in_buckets) const;

  const ModelGraph& model_;
  const Cluster& cluster_;
  const Goal& goal_;
  const FixedChoices& fixed_;
  SearchSpace& space_;
  int blocks_, devices_per_node_;
  std::map<std::tuple<int, std::int64_t, bool>, std::int32_t> pipelines_;
  std::map<std::pair<int, int>, std::vector<std::shared_ptr<const Placement>>> placements_;
  std::map<const ScheduleRule*, ScheduleTraits> schedule_traits_;
  std::map<std::tuple<std::int64_t, int, bool, bool, std::int64_t>, std::int32_t> replications_;
};

}  // namespace meshwright
