/// The search of chain_partition.hpp with one size of micro-batches.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "planner/partition/chain_stages.hpp"

namespace meshwright {

inline constexpr double kNoSeconds = std::numeric_limits<double>::infinity();
/// Ratios of slowest stages that are distinguished.
inline constexpr double kCoarseStep = 1.02, kFineStep = 1.0005, kFinestStep = 1 + 1e-9;

/// Devices of a stage, as an exponent of two, and its operators.
struct ChainStageChoice {
  std::int32_t log_devices = 0, begin = 0, end = 0;
};

struct ChainPipeline {
  double sum = kNoSeconds, slowest = 0;
  std::vector<ChainStageChoice> stages;  ///< in order
};

/// Times of the stages that begin at one operator, by whether they end a node, and operators - 1.
struct StageSeconds {
  std::array<std::vector<double>, 2> bounds;
  std::array<std::vector<double>, 2> times;  ///< of the strategies that were found, else bounds
  std::array<std::vector<bool>, 2> is_solved;
};
/// Times of stages: bounds, or those of strategies where they were found.
enum class StageEstimate : std::uint8_t { kBound, kFound };

/// Pipelines with one size of micro-batches.
class PipelineSearch {
 public:
  /// `cuts`: the positions at which stages can begin or end, ascending, from the first to the last.
  /// Bounds and plans are of no use once `stops` returns true.
  PipelineSearch(const ChainProblem& problem, int microbatch, const std::vector<std::size_t>& cuts,
                 const std::function<bool()>& stops);

  bool exists() const { return !devices_.empty(); }
  /// Of the step, from the work alone.
  double work_bound() const { return steps(least_threshold_) + least_threshold_; }
  /// Of the step, up to `best`, that of another plan. Slowest stages are distinguished if their
  /// ratio is at least `step`.
  double bound(double best, double step);
  /// A fast test that no step is shorter than `best`.
  bool is_slower_than(double best);
  /// The best pipeline by the bounds of its stages, after bound() with kCoarseStep.
  std::optional<ChainPlan> first_plan();
  /// The shortest step with strategies, if it is less than `best`.
  std::optional<ChainPlan> solve(double best, double step);

 private:
  struct Key {
    std::int32_t log_devices, behind, begins_node, begin;
  };
  struct Front;

  double steps(double threshold) const { return threshold * (microbatches_ - 1); }
  std::size_t last() const { return problem_.chain.size(); }
  /// Sets the longest stages that are bounded.
  void set_most_seconds(double seconds);
  const ChainStages& stages_on(int log_devices) const;
  /// By position; of all keys that differ in `begin` alone.
  std::vector<StageSeconds>& all_times(const Key& key);
  StageSeconds& times(const Key& key, std::vector<StageSeconds>& all);
  StageSeconds& times(const Key& key) { return times(key, all_times(key)); }
  bool begins_node(int devices_behind) const {
    const int before = problem_.devices() - devices_behind;
    return before > 0 && before % problem_.devices_per_node == 0;
  }
  bool ends_node(int devices_behind) const {
    return devices_behind % problem_.devices_per_node == 0;
  }
  ChainPipeline best_pipeline(double threshold, StageEstimate estimate);
  using Visit = std::function<void(double low, double high, const ChainPipeline&)>;
  /// Calls visit(low, high, best pipeline at most as slow as high) for small ranges (low, high] of
  /// the slowest stage, ascending, where a step can be less than `limit`, which visits can lower.
  void for_each_range(double step, const double& limit, StageEstimate estimate, const Visit& visit);
  void for_each_range(double low, double high, double step, const double& limit,
                      StageEstimate estimate, const Visit& visit);
  bool solve_stages(const ChainPipeline& pipeline);
  std::uint64_t id(const Key& key, std::size_t operators, bool ends_node) const;
  std::optional<ChainPlan> plan_of(const ChainPipeline& pipeline) const;

  const ChainProblem& problem_;
  const std::function<bool()>& stops_;
  int microbatch_;
  double microbatches_ = 1;
  std::vector<std::pair<int, ChainStages>> devices_;  ///< exponent of two, stages
  std::vector<std::size_t> cuts_;
  std::vector<double> work_, cut_work_;  ///< of the operators before a position, and before a cut
  double least_threshold_ = 0, most_threshold_ = 0, most_seconds_ = 0;
  bool has_few_prices_ = false;  ///< of bounds()
  /// By exponent: the first position at which the stages that begin are the same.
  std::map<int, std::vector<std::int32_t>> alike_;
  /// By exponent, stages behind and whether a node begins; then by position.
  std::unordered_map<std::uint64_t, std::vector<StageSeconds>> times_;
  std::unordered_map<std::uint64_t, SolvedStage> solved_;
};

}  // namespace meshwright
