/// Evaluates many strategies of one job: each is completed to a plan and simulated, or has a list
/// of problems.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/base/error.hpp"
#include "core/cluster/cluster.hpp"
#include "core/cost/cost_model.hpp"
#include "core/formats/plan.hpp"
#include "core/model/model_graph.hpp"
#include "core/plan/plan.hpp"
#include "core/trainer/trainer.hpp"

namespace meshwright {

struct SweepPoint {
  Strategy strategy;
  std::optional<PlanFigures> figures;  ///< absent: see `problems`
  std::vector<Diagnostic> problems;
  bool has_failed = false;  ///< `problems` are of this program or machine, not of the strategy
};

struct SweepOptions {
  int threads = 0;  ///< 0: all cores. The result does not depend on it.
  /// If set, plans that this program cannot run have problems instead of figures.
  const Trainer* trainer = nullptr;
  /// Receives every evaluated point; called from any of the threads, one at a time.
  std::function<void(std::size_t index, const SweepPoint& point)> on_point = {};
  std::function<bool()> canceled = {};  ///< called from any of the threads
};

/// One point per strategy, in the same order. After cancellation, points that were not started have
/// neither figures nor problems. Plans that do not fit in memory are included; see their figures. A
/// point whose evaluation throws has a problem, and the others are evaluated.
std::vector<SweepPoint> sweep(std::span<const Strategy> strategies, const ModelGraph& model,
                              const Cluster& cluster, const CostModel& cost_model,
                              const SweepOptions& options = {});

}  // namespace meshwright
