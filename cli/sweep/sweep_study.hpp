/// The job of a sweep with all combinations, and their evaluation.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/flags/sweep_axes.hpp"
#include "cli/sweep/sweep_flags.hpp"
#include "planner/search/sweep.hpp"

namespace meshwright {

struct SweepStudy {
  std::vector<SweptFlag> swept;
  std::vector<SweptStrategy> combinations;
  std::vector<SweepPoint> points;  ///< of each combination
  ModelGraph model;
  Cluster cluster;
  Trainer trainer;
  bool is_trainer_given = false;  ///< only then combinations that it cannot run are problems
  std::unique_ptr<CostModel> cost_model;
  /// All that predictions depend on, by name: short texts, or hashes of files.
  std::map<std::string, std::string> identity;
};

/// Points whose parallel sizes do not multiply to --gpus have problems already. Warnings about the
/// model are printed if `warns`. Throws UsageError or InputError.
SweepStudy load_study(const SweepFlags& flags, bool warns = true);

/// A hash of the identity: 16 hexadecimal digits.
std::string key_of(const SweepStudy& study);

/// False: not yet, or canceled before its turn.
bool is_evaluated(const SweepPoint& point);

/// The points of a part that are not evaluated.
std::vector<std::size_t> missing_points(const SweepStudy& study, const SweepPart& part = {});

struct PointEvaluation {
  int threads = 0;  ///< 0: all cores
  /// Receives every evaluated point; called from any of the threads, one at a time.
  std::function<void(std::size_t index, SweepPoint point)> on_point = {};
  std::function<bool()> canceled = {};  ///< called from any of the threads
};
/// Evaluates these points, and leaves the study as it is.
void evaluate_points(const SweepStudy& study, std::span<const std::size_t> indices,
                     const PointEvaluation& evaluation);

}  // namespace meshwright
