/// Stages of a chain whose operators choose strategies: lower bounds of many stages at once, and
/// the strategies of one stage.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "core/model/chain_problem.hpp"

namespace meshwright {

/// Whether the transfers at the two ends of a stage cross nodes.
struct StageEnds {
  bool begins_node = false, ends_node = false;
};

struct SolvedStage {
  double seconds = 0;
  std::vector<ChainStrategy> strategies;  ///< of its operators
};

/// All stages on `devices` devices of a pipeline of micro-batches of one size.
class ChainStages {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  /// `cuts`: the positions at which stages can end.
  ChainStages(const ChainProblem& problem, int microbatch, int devices,
              const std::vector<std::size_t>& cuts);

  /// Some strategy is measured for every operator.
  bool exist() const { return exist_; }
  /// What every operator takes at least and at most.
  struct OperatorRange {
    double work = kNever;   ///< seconds x devices, without transfers and conversions
    double state = kNever;  ///< bytes of parameters, gradients and optimizer state x devices
    double forward_workspace = kNever, backward_workspace = kNever;  ///< bytes
    double most_seconds = 0;  ///< recomputed, with transfers and the conversion of its input
  };
  const OperatorRange& range(std::size_t position) const {
    return ranges_[static_cast<std::size_t>(problem_.chain[position])];
  }

  /// Bounds of the times in seconds of the stages that begin at `begin` and have 1, 2, … operators,
  /// and end within a node (first) or at the end of one (second), as long as stages can take less
  /// than `most_seconds`; zero for ends that are no cuts. With `has_few_prices` faster and lower.
  ///
  /// Lagrangian: for any price of memory, the cheapest strategies by time and priced excess of
  /// memory are a bound. Prices are those that would trade times for memory of the operators.
  std::array<std::vector<double>, 2> bounds(std::size_t begin, std::size_t stages_behind,
                                            bool begins_node, double most_seconds,
                                            bool has_few_prices) const;

  /// Strategies that fit, found by prices of memory, mixing the strategies of two prices, and
  /// recomputing less. Absent if none was found.
  std::optional<SolvedStage> solve(std::size_t begin, std::size_t end, std::size_t stages_behind,
                                   StageEnds ends) const;

 private:
  /// A strategy of an operator, with and without recomputation. Seconds and bytes.
  struct Option {
    ChainStrategy strategy;
    double seconds = 0, forward = 0;
    double parameters = 0, activations = 0, input = 0;
    double forward_workspace = 0, backward_workspace = 0;
    double input_seconds[2] = {}, output_seconds[2] = {};  ///< within and between nodes
    double least_output_seconds[2] = {};                   ///< of all tensor degrees
  };
  static constexpr std::size_t kMostOptions =
      std::size_t{kMostChainTensorDegrees} * kChainAlgorithms;
  /// Costs by option of an operator.
  struct States {
    std::array<double, kMostOptions> kept, recomputed;  ///< set for its options
  };
  /// Seconds and priced memory of the options of an operator.
  struct PricedOperator : States {
    std::size_t options = 0;
    std::array<double, kMostOptions> saved{};  ///< if it and the next one are recomputed
    /// In addition, where a stage begins within and between nodes.
    std::array<std::array<double, kMostOptions>, 2> begin{};
  };
  /// Of the stages that end with an operator.
  struct LeastCosts {
    double before_output = kNever;
    std::array<double, 2> with_output{kNever, kNever};  ///< within and between nodes
  };
  struct Evaluation {
    double seconds = 0, bytes = 0;
  };
  using Choice = std::vector<std::uint8_t>;  ///< 2 x option + is recomputed, of every operator

  class StageSearch;

  const std::vector<Option>& options(std::size_t position) const {
    return options_[static_cast<std::size_t>(problem_.chain[position])];
  }
  const ChainOperator& op(std::size_t position) const {
    return problem_.operators[static_cast<std::size_t>(problem_.chain[position])];
  }
  /// Seconds by option of the operator before and of this one.
  const std::vector<double>& conversions(std::size_t position) const {
    return conversions_[static_cast<std::size_t>(problem_.chain[position - 1]) *
                            problem_.operators.size() +
                        static_cast<std::size_t>(problem_.chain[position])];
  }
  std::vector<double> prices_of(std::size_t stages_behind) const;
  std::vector<double> workspace_levels(std::size_t begin, std::size_t end) const;
  /// With a price per byte, without options of larger backward workspaces.
  std::vector<PricedOperator> price_operators(double per_byte, std::size_t stages_behind,
                                              double most_workspace) const;
  States begin_stage(const PricedOperator& op, bool begins_node) const;
  void advance(std::size_t position, const std::vector<PricedOperator>& priced, States& costs,
               std::uint8_t* previous) const;
  LeastCosts least_costs(std::size_t position, const States& costs) const;
  std::optional<double> growth(std::size_t position, const States& before,
                               const States& here) const;
  Choice cheapest(std::size_t begin, std::size_t end, const std::vector<PricedOperator>& priced,
                  StageEnds ends) const;
  Evaluation evaluate(std::size_t begin, const Choice& choice, std::size_t stages_behind,
                      StageEnds ends) const;

  const ChainProblem& problem_;
  int microbatch_;
  bool exist_ = true;
  std::vector<bool> is_cut_;
  std::vector<std::vector<Option>> options_;  ///< of every different operator
  std::vector<OperatorRange> ranges_;         ///< the same
  std::vector<std::size_t> period_;           ///< to the same operator before, by position; 0: none
  std::vector<std::vector<double>> conversions_;  ///< of every pair of neighbors
};

}  // namespace meshwright
