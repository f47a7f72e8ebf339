/// The planner: which split, schedule, micro-batch, recomputation and sharding trains this model
/// fastest on this cluster. Every candidate is pruned by a named bound, or simulated.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/cluster.hpp"
#include "core/cost_model.hpp"
#include "core/evaluation.hpp"
#include "core/model_graph.hpp"
#include "core/plan.hpp"

namespace meshwright {

struct Goal {
  int gpus = 1;
  std::int64_t global_batch = 1;
  std::int64_t sequence_length = 1;
};

/// Fields that are set restrict the search to that value (`plan --fix`). An unset dtype is bf16
/// where the device has it, else fp16, else fp32.
struct FixedChoices {
  std::optional<int> tensor, pipeline, chunks, data, context, expert, expert_tensor, micro_batch,
      zero;
  std::optional<bool> sequence_parallel;
  std::optional<std::string> schedule;
  std::optional<Recompute> recompute;
  std::optional<Dtype> dtype;
  std::optional<AttentionAlgorithm> attention;
  DataParallelism data_parallelism = {};    ///< of every plan; never searched
  ModelParallelism model_parallelism = {};  ///< not searched: as usual, or as said
};

/// Why a candidate was not simulated.
enum class PruneReason : std::uint8_t {
  kStructure,  ///< degrees do not divide heads, blocks, experts or the batch
  kSchedule,   ///< the schedule's own rules
  kMemory,     ///< does not fit, by counting
  kBound,      ///< a lower bound of its step time is above the best plans found
  kDominated   ///< equal to another candidate but for a choice that cannot help
};
inline constexpr int kPruneReasonCount = 5;
std::string_view name_of(PruneReason reason);

/// One row of the table: the best plan of its split over the devices.
struct RankedPlan {
  Plan plan;
  Evaluation evaluation;
  std::string why;  ///< one line: what limits it and what the alternatives would cost
};

struct SearchCertificate {
  std::int64_t candidates = 0;
  std::array<std::int64_t, kPruneReasonCount> pruned{};
  std::int64_t simulated = 0;
  /// True: every candidate of the space is simulated or pruned by a bound that cannot err.
  bool proved_optimal = false;
  double gap = 0;  ///< (best - lower bound of what was not simulated) / best, 0 when proved
};

/// Why nothing fits, and the nearest plan that would.
struct Infeasible {
  std::string reason;
  std::optional<RankedPlan> nearest;  ///< least over capacity, or with more devices
};

struct SearchResult {
  std::vector<RankedPlan> plans;  ///< best first; each passes check_plan() and fits
  SearchCertificate certificate;
  std::optional<Infeasible> infeasible;  ///< when plans is empty
};

struct SearchOptions {
  int top = 10;
  int threads = 0;  ///< 0: all cores. The result does not depend on it.
  std::function<void(std::int64_t done, std::int64_t of)> progress =
      {};  ///< called from one thread
  std::function<bool()> cancelled = {};
};

SearchResult search(const ModelGraph& model, const Cluster& cluster, const CostModel& cost_model,
                    const Goal& goal, const FixedChoices& fixed = {},
                    const SearchOptions& options = {});

/// Completes a strategy to a plan: the stage cut whose slowest stage is fastest, ties to the most
/// even one.
Plan complete_plan(const Strategy& strategy, const ModelGraph& model, const Cluster& cluster,
                   const CostModel& cost_model);

/// lower + price + simulate + evaluate of one plan, representatives only.
Evaluation evaluate_plan(const Plan& plan, const ModelGraph& model, const Cluster& cluster,
                         const CostModel& cost_model);

}  // namespace meshwright
