/// The planner: finds the parallel sizes, schedule, micro-batch size, recomputation and optimizer
/// sharding with the shortest step time for a model on a cluster. Every candidate is either
/// simulated or pruned for a named reason.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/cluster/cluster.hpp"
#include "core/cost/cost_model.hpp"
#include "core/model/model_graph.hpp"
#include "core/plan/plan.hpp"
#include "core/timeline/evaluation.hpp"
#include "planner/search/fixed_choices.hpp"

namespace meshwright {

/// Why a candidate was not simulated.
enum class PruneReason : std::uint8_t {
  kStructure,  ///< degrees do not divide heads, blocks, experts or the batch
  kSchedule,   ///< not supported by the schedule
  kMemory,     ///< does not fit in memory, by counting
  kBound,      ///< lower bound of its step time exceeds the best plans found
  kDominated,  ///< differs from another candidate only in a choice that cannot help
  kTrainer     ///< not supported by FixedChoices::trainer
};
inline constexpr int kPruneReasonCount = 6;
std::string_view name_of(PruneReason reason);

/// One row of the table: the best plan for its parallel sizes.
struct RankedPlan {
  Plan plan;
  Evaluation evaluation;
  std::string why;  ///< one line: its limits, and the memory of the nearest alternative
  /// SearchOptions::selects_nodes: the nodes that it uses, in rank order; empty: those of the
  /// cluster.
  std::vector<NodeGroup> nodes = {};
};

/// The best plan on some nodes of a heterogeneous cluster, in their best order.
struct BestOfNodes {
  std::vector<NodeGroup> nodes;
  std::optional<RankedPlan> best;  ///< absent: nothing was found on them
  bool proved_optimal = true;      ///< no plan on these nodes is faster
};

struct SearchCertificate {
  std::int64_t candidates = 0;
  std::array<std::int64_t, kPruneReasonCount> pruned{};
  std::int64_t simulated = 0;
  /// True if every candidate of the space was simulated or pruned by a valid bound: then all rows
  /// are the best of their parallel sizes.
  bool proved_optimal = false;
  /// (best - lower bound of unevaluated candidates) / best; 0: the best plan is optimal, 1: no
  /// bound is known.
  double gap = 0;
  /// Changes that made plan 1 faster after the search (refinement.hpp).
  std::vector<std::string> refined_by = {};
  /// SearchOptions::per_layer: the shortest step of a plan without layer options.
  std::optional<Ticks> uniform_step_time = {};
};

/// The reason why no plan fits, and the nearest plan that would.
struct Infeasible {
  std::string reason;
  std::optional<RankedPlan> nearest;  ///< a plan on more devices, or the one with the lowest peak
};

struct SearchResult {
  std::vector<RankedPlan> plans;  ///< best first; each passes check_plan() and fits in memory
  SearchCertificate certificate;
  std::optional<Infeasible> infeasible;    ///< if plans is empty
  std::vector<BestOfNodes> by_nodes = {};  ///< with SearchOptions::selects_nodes
};

struct LayerPrices;

struct SearchOptions {
  int top = 10;
  int threads = 0;  ///< 0: all cores. The result does not depend on it.
  std::function<void(std::int64_t done, std::int64_t of)> progress =
      {};  ///< called from one thread
  std::function<bool()> canceled = {};
  /// Like `canceled`, but the search goes on until it has found a plan.
  std::function<bool()> is_out_of_time = {};
  /// Plans with longer steps are not wanted: they are pruned by bound.
  std::optional<Ticks> longest_step = {};
  /// On heterogeneous clusters, searches which nodes to use, and their order
  /// (node_selection.hpp): Goal::gpus is the most that a plan may use. Otherwise ranks are on the
  /// first nodes of the cluster, in its order.
  bool selects_nodes = false;
  /// Improves plan 1 by single changes that are not in the searched space (refinement.hpp).
  bool refines = false;
  /// On heterogeneous clusters, also tries unequal shares of the batch (unequal_shares.hpp).
  bool tries_shares = false;
  /// Gives every row the fastest options per layer (per_layer.hpp).
  bool per_layer = false;
  /// Prices that searches of the same job on parts of one cluster share (candidate_costs.hpp).
  LayerPrices* layer_prices = nullptr;
};

SearchResult search(const ModelGraph& model, const Cluster& cluster, const CostModel& cost_model,
                    const Goal& goal, const FixedChoices& fixed = {},
                    const SearchOptions& options = {});

/// Completes a strategy to a plan: chooses the stage partition with the fastest slowest stage, and
/// among equal ones the most even.
Plan complete_plan(const Strategy& strategy, const ModelGraph& model, const Cluster& cluster,
                   const CostModel& cost_model);

}  // namespace meshwright
