#include "planner/partition/chain_stages.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace meshwright {
namespace {

constexpr double kPriceSteps = 1.6;                ///< ratio of successive prices
constexpr double kHighPrices[] = {10, 100, 1000};  ///< of the highest of recomputation
constexpr int kBisections = 12;

}  // namespace

ChainStages::ChainStages(const ChainProblem& problem, int microbatch, int devices,
                         const std::vector<std::size_t>& cuts)
    : problem_(problem),
      microbatch_(microbatch),
      is_cut_(problem.chain.size() + 1),
      options_(problem.operators.size()) {
  for (const std::size_t position : cuts) is_cut_[position] = true;
  for (std::size_t k = 0; k < problem.operators.size(); ++k) {
    const ChainOperator& op = problem.operators[k];
    for (int log_tensor = 0; log_tensor < problem.tensor_degrees; ++log_tensor) {
      const int tensor = 1 << log_tensor, data = devices / tensor;
      if (tensor > problem.devices_per_node || data * tensor != devices || microbatch % data != 0)
        continue;
      const auto size =
          std::find(problem.microbatches.begin(), problem.microbatches.end(), microbatch / data);
      if (size == problem.microbatches.end()) continue;
      const auto index = static_cast<std::size_t>(size - problem.microbatches.begin());
      for (int algorithm = 0; algorithm < op.algorithms; ++algorithm) {
        const ChainCosts& costs = problem.costs(op, index, log_tensor, algorithm);
        if (!costs.is_measured) continue;
        Option option{
            .strategy = {tensor, data, algorithm, false},
            .seconds = (costs.forward + costs.backward).value,
            .forward = costs.forward.value,
            .parameters = static_cast<double>(costs.parameters.value),
            .activations = op.activation_share * static_cast<double>(costs.activations.value),
            .input = static_cast<double>(costs.input.value),
            .forward_workspace = static_cast<double>(costs.forward_workspace.value),
            .backward_workspace = static_cast<double>(costs.backward_workspace.value)};
        for (const bool crosses : {false, true}) {
          const auto& rates = crosses ? problem.rates_between_nodes : problem.rates_in_node;
          option.input_seconds[crosses] = transfer_time(rates, costs.input).value;
          option.output_seconds[crosses] = transfer_time(rates, costs.output).value;
          double least = kNever;
          for (int other = 0; other < problem.tensor_degrees; ++other) {
            const ChainCosts& output = problem.costs(op, index, other, algorithm);
            if (output.is_measured)
              least = std::min(least, transfer_time(rates, output.output).value);
          }
          option.least_output_seconds[crosses] = least;
        }
        options_[k].push_back(option);
      }
    }
    exist_ = exist_ && !options_[k].empty();
    OperatorRange& range = ranges_.emplace_back();
    for (const Option& option : options_[k]) {
      range.work = std::min(range.work, option.seconds * devices);
      range.state = std::min(range.state, problem.state_share * option.parameters * devices);
      range.forward_workspace = std::min(range.forward_workspace, option.forward_workspace);
      range.backward_workspace = std::min(range.backward_workspace, option.backward_workspace);
      double most = option.seconds + option.forward;
      for (const std::size_t crosses : {0, 1})
        most += option.input_seconds[crosses] + option.output_seconds[crosses];
      range.most_seconds = std::max(range.most_seconds, most);
    }
  }
  if (!exist_) return;
  std::vector<std::size_t> seen(options_.size(), problem.chain.size());
  for (std::size_t i = 0; i < problem.chain.size(); ++i) {
    std::size_t& last = seen[static_cast<std::size_t>(problem.chain[i])];
    period_.push_back(last < i ? i - last : 0);
    last = i;
  }
  conversions_.resize(options_.size() * options_.size());
  for (std::size_t i = 1; i < problem.chain.size(); ++i) {
    const auto a = static_cast<std::size_t>(problem.chain[i - 1]);
    const auto b = static_cast<std::size_t>(problem.chain[i]);
    std::vector<double>& seconds = conversions_[a * options_.size() + b];
    if (!seconds.empty()) continue;
    double slowest = 0;
    for (const Option& source : options_[a])
      for (const Option& target : options_[b]) {
        const auto from =
            problem.operators[a].output[static_cast<std::size_t>(source.strategy.algorithm)];
        const auto to =
            problem.operators[b].input[static_cast<std::size_t>(target.strategy.algorithm)];
        seconds.push_back(conversion_time(problem, from, source.strategy, to, target.strategy,
                                          Bytes(static_cast<std::int64_t>(target.input)))
                              .value);
        if (seconds.back() < kNever) slowest = std::max(slowest, seconds.back());
      }
    ranges_[b].most_seconds += slowest;
  }
}

/// Recomputation trades forward times for activations; tensor parallelism trades more.
std::vector<double> ChainStages::prices_of(std::size_t stages_behind) const {
  double least = kNever, most = 0;
  for (const std::vector<Option>& options : options_)
    for (const Option& option : options) {
      const double saved = option.activations * static_cast<double>(stages_behind + 1);
      if (saved <= 0 || option.forward <= 0) continue;
      least = std::min(least, option.forward / saved);
      most = std::max(most, option.forward / saved);
    }
  std::vector<double> prices{0};
  if (least == kNever) least = most = 1;
  double price = least;
  while (price < 2 * most) {
    prices.push_back(price);
    price *= kPriceSteps;
  }
  for (const double factor : kHighPrices) prices.push_back(factor * most);
  return prices;
}

std::vector<ChainStages::PricedOperator> ChainStages::price_operators(double per_byte,
                                                                      std::size_t stages_behind,
                                                                      double most_workspace) const {
  const double per_activation = per_byte * static_cast<double>(stages_behind + 1);
  std::vector<PricedOperator> priced(options_.size());
  for (std::size_t k = 0; k < options_.size(); ++k) {
    PricedOperator& op = priced[k];
    op.options = options_[k].size();
    for (std::size_t s = 0; s < op.options; ++s) {
      const Option& option = options_[k][s];
      op.kept[s] = option.backward_workspace > most_workspace
                       ? kNever
                       : option.seconds + per_byte * problem_.state_share * option.parameters +
                             per_activation * option.activations;
      op.recomputed[s] =
          problem_.operators[k].can_be_recomputed ? op.kept[s] + option.forward : kNever;
      op.saved[s] = per_activation * option.activations;
      for (std::size_t crosses = 0; crosses < 2; ++crosses)
        op.begin[crosses][s] = option.input_seconds[crosses] + per_activation * option.input;
    }
  }
  return priced;
}

ChainStages::States ChainStages::begin_stage(const PricedOperator& op, bool begins_node) const {
  States costs;
  for (std::size_t s = 0; s < op.options; ++s) {
    costs.kept[s] = op.kept[s] + op.begin[begins_node][s];
    costs.recomputed[s] = op.recomputed[s] + op.begin[begins_node][s];
  }
  return costs;
}

/// Costs of the cheapest strategies up to the operator at `position`, from those up to the operator
/// before. Notes in `previous`, if there is one, from which state.
void ChainStages::advance(std::size_t position, const std::vector<PricedOperator>& priced,
                          States& costs, std::uint8_t* previous) const {
  const PricedOperator& before = priced[static_cast<std::size_t>(problem_.chain[position - 1])];
  const PricedOperator& here = priced[static_cast<std::size_t>(problem_.chain[position])];
  const double* conversion = conversions(position).data();
  const bool begins_layer = op(position).begins_layer;
  States from;
  for (std::size_t s = 0; s < before.options; ++s) {
    const double saved = begins_layer ? 0 : before.saved[s];
    from.kept[s] = std::min(costs.kept[s], costs.recomputed[s]);
    from.recomputed[s] = std::min(costs.kept[s], costs.recomputed[s] - saved);
  }
  States next;
  for (std::size_t t = 0; t < here.options; ++t) {
    double kept = kNever, recomputed = kNever;
    std::size_t from_kept = 0, from_recomputed = 0;
    for (std::size_t s = 0; s < before.options; ++s) {
      const double change = conversion[s * here.options + t];
      const double to_kept = from.kept[s] + change, to_recomputed = from.recomputed[s] + change;
      if (to_kept < kept) kept = to_kept, from_kept = s;
      if (to_recomputed < recomputed) recomputed = to_recomputed, from_recomputed = s;
    }
    next.kept[t] = kept + here.kept[t];
    next.recomputed[t] = recomputed + here.recomputed[t];
    if (previous == nullptr) continue;
    const auto state = [&](std::size_t s, double value) {
      return static_cast<std::uint8_t>(2 * s + (costs.kept[s] == value ? 0 : 1));
    };
    previous[2 * t] = state(from_kept, from.kept[from_kept]);
    previous[2 * t + 1] = state(from_recomputed, from.recomputed[from_recomputed]);
  }
  costs = next;
}

ChainStages::LeastCosts ChainStages::least_costs(std::size_t position, const States& costs) const {
  LeastCosts least;
  const std::vector<Option>& here = options(position);
  for (std::size_t s = 0; s < here.size(); ++s) {
    const double cost = std::min(costs.kept[s], costs.recomputed[s]);
    least.before_output = std::min(least.before_output, cost);
    for (std::size_t crosses = 0; crosses < 2; ++crosses)
      least.with_output[crosses] =
          std::min(least.with_output[crosses], cost + here[s].least_output_seconds[crosses]);
  }
  return least;
}

/// By how much all costs grew since the same operator of the layer before, if by the same: they
/// grow by that in all later layers, too.
std::optional<double> ChainStages::growth(std::size_t position, const States& before,
                                          const States& here) const {
  constexpr double kRounding = 1e-12;
  double least = kNever, most = -kNever;
  for (std::size_t s = 0; s < options(position).size(); ++s)
    for (const auto& [a, b] : {std::pair(before.kept[s], here.kept[s]),
                               std::pair(before.recomputed[s], here.recomputed[s])}) {
      if (a == kNever && b == kNever) continue;
      least = std::min(least, b - a);
      most = std::max(most, b - a);
    }
  if (most - least <= kRounding * std::abs(here.kept[0])) return least;
  return std::nullopt;
}

std::array<std::vector<double>, 2> ChainStages::bounds(std::size_t begin, std::size_t stages_behind,
                                                       bool begins_node, double most_seconds,
                                                       bool has_few_prices) const {
  std::array<std::vector<double>, 2> result;
  const auto limit = static_cast<double>(problem_.device_memory.value);
  std::size_t end = problem_.chain.size();
  std::vector<States> costs(end - begin);
  std::vector<LeastCosts> least(end - begin);
  std::vector<double> prices = prices_of(stages_behind);
  if (has_few_prices) {
    std::size_t kept = 1;  // no price, and every third one
    for (std::size_t i = 3; i < prices.size(); i += 3) prices[kept++] = prices[i];
    prices.resize(kept);
  }
  for (const double per_byte : prices) {
    const auto priced = price_operators(per_byte, stages_behind, kNever);
    double forward_workspace = 0, backward_workspace = 0;  // without the last operator
    /// Of the stage that ends with operator i, which costs `growth` more than `of_stage`.
    const auto note = [&](std::size_t i, const LeastCosts& of_stage, double growth) {
      if (result[0].size() <= i - begin)
        for (std::vector<double>& bounds : result) bounds.resize(i - begin + 1, 0);
      const double excess = per_byte * (forward_workspace + backward_workspace - limit) + growth;
      for (std::size_t crosses = 0; crosses < 2; ++crosses) {
        double& bound = result[crosses][i - begin];
        bound = std::max(bound, of_stage.with_output[crosses] + excess);
      }
      if (per_byte == 0 && of_stage.before_output + growth > most_seconds) end = i + 1;
    };
    for (std::size_t i = begin; i < end; ++i) {
      States& here = costs[i - begin];
      if (i == begin) {
        here = begin_stage(priced[static_cast<std::size_t>(problem_.chain[i])], begins_node);
      } else {
        const OperatorRange& before = range(i - 1);
        forward_workspace = std::max(forward_workspace, before.forward_workspace);
        backward_workspace = std::max(backward_workspace, before.backward_workspace);
        here = costs[i - begin - 1];
        advance(i, priced, here, nullptr);
      }
      least[i - begin] = least_costs(i, here);
      note(i, least[i - begin], 0);
      const std::size_t period = period_[i];
      if (period == 0 || i < begin + 2 * period) continue;
      const auto growth = this->growth(i, costs[i - begin - period], here);
      if (!growth) continue;
      // The layers that follow, up to another operator.
      std::size_t next = i;
      const auto layers_to = [&](std::size_t j) { return (j - i + period - 1) / period; };
      while (++next < end && period_[next] == period)
        if (is_cut_[next + 1]) {
          const std::size_t layers = layers_to(next);
          note(next, least[next - begin - layers * period], *growth * static_cast<double>(layers));
        }
      if (next >= end) break;
      if (--next == i) continue;
      const std::size_t layers = layers_to(next);
      States& last = costs[next - begin];
      last = costs[next - begin - layers * period];
      for (std::size_t s = 0; s < options(next).size(); ++s) {
        last.kept[s] += *growth * static_cast<double>(layers);
        last.recomputed[s] += *growth * static_cast<double>(layers);
      }
      i = next;
    }
  }
  return result;
}

ChainStages::Choice ChainStages::cheapest(std::size_t begin, std::size_t end,
                                          const std::vector<PricedOperator>& priced,
                                          StageEnds ends) const {
  constexpr std::size_t kMostStates = 2 * kMostOptions;
  std::vector<std::uint8_t> previous((end - begin) * kMostStates);
  States costs =
      begin_stage(priced[static_cast<std::size_t>(problem_.chain[begin])], ends.begins_node);
  for (std::size_t i = begin + 1; i < end; ++i)
    advance(i, priced, costs, &previous[(i - begin) * kMostStates]);
  const std::vector<Option>& last = options(end - 1);
  Choice choice(end - begin);
  double least = kNever;
  for (std::size_t s = 0; s < last.size(); ++s)
    for (const bool is_recomputed : {false, true}) {
      const double cost = (is_recomputed ? costs.recomputed[s] : costs.kept[s]) +
                          last[s].output_seconds[ends.ends_node];
      if (cost >= least) continue;
      least = cost;
      choice.back() = static_cast<std::uint8_t>(2 * s + (is_recomputed ? 1 : 0));
    }
  for (std::size_t i = end - begin - 1; i > 0; --i)
    choice[i - 1] = previous[i * kMostStates + choice[i]];
  return choice;
}

/// As price_chain() defines them.
ChainStages::Evaluation ChainStages::evaluate(std::size_t begin, const Choice& choice,
                                              std::size_t stages_behind, StageEnds ends) const {
  const auto option_at = [&](std::size_t i) -> const Option& {
    return options(begin + i)[choice[i] / 2];
  };
  const auto is_recomputed = [&](std::size_t i) { return choice[i] % 2 == 1; };
  Evaluation sum;
  double parameters = 0, kept = option_at(0).input, run = 0, largest_run = 0;
  double forward_workspace = 0, backward_workspace = 0;
  const std::size_t size = choice.size();
  for (std::size_t i = 0; i < size; ++i) {
    const Option& option = option_at(i);
    sum.seconds += option.seconds + (is_recomputed(i) ? option.forward : 0);
    if (i > 0)
      sum.seconds +=
          conversions(begin + i)[choice[i - 1] / 2 * options(begin + i).size() + choice[i] / 2];
    parameters += option.parameters;
    kept += option.activations;
    if (i + 1 == size) break;
    forward_workspace = std::max(forward_workspace, option.forward_workspace);
    backward_workspace = std::max(backward_workspace, option.backward_workspace);
    if (!is_recomputed(i) || !is_recomputed(i + 1)) {
      largest_run = std::max(largest_run, run);
      run = 0;
      continue;
    }
    const bool ends_layer = op(begin + i + 1).begins_layer;
    if (!ends_layer) kept -= option.activations;
    run += option.activations;
    if (op(begin + i).activation_share == 1 && (ends_layer || i + 2 == size)) {
      largest_run = std::max(largest_run, run);
      run = 0;
    }
  }
  const int log_tensor =
      static_cast<int>(std::bit_width(static_cast<unsigned>(option_at(0).strategy.tensor))) - 1;
  const Option& last = option_at(size - 1);
  const auto microbatch = std::find(problem_.microbatches.begin(), problem_.microbatches.end(),
                                    microbatch_ / last.strategy.data);
  const ChainCosts& output = problem_.costs(
      op(begin + size - 1), static_cast<std::size_t>(microbatch - problem_.microbatches.begin()),
      log_tensor, last.strategy.algorithm);
  const auto& rates = ends.ends_node ? problem_.rates_between_nodes : problem_.rates_in_node;
  sum.seconds += option_at(0).input_seconds[ends.begins_node] +
                 (output.is_measured ? transfer_time(rates, output.output).value : kNever);
  sum.bytes = problem_.state_share * parameters + kept * static_cast<double>(stages_behind + 1) +
              largest_run + std::max(forward_workspace + backward_workspace, parameters);
  return sum;
}

/// The largest backward workspaces of stages in which every operator has the same tensor degree.
std::vector<double> ChainStages::workspace_levels(std::size_t begin, std::size_t end) const {
  std::vector<double> levels;
  for (int log_tensor = 0; log_tensor < problem_.tensor_degrees; ++log_tensor) {
    double largest = 0;
    bool is_possible = true;
    for (std::size_t i = begin; i < end; ++i) {
      double least = kNever;
      for (const Option& option : options(i))
        if (option.strategy.tensor == 1 << log_tensor)
          least = std::min(least, option.backward_workspace);
      is_possible = is_possible && least < kNever;
      largest = std::max(largest, least);
    }
    if (is_possible) levels.push_back(largest);
  }
  levels.push_back(kNever);
  std::sort(levels.begin(), levels.end());
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  return levels;
}

/// Searches the strategies of one stage, and keeps the fastest that fit in memory.
class ChainStages::StageSearch {
 public:
  StageSearch(const ChainStages& stages, std::size_t begin, std::size_t end,
              std::size_t stages_behind, StageEnds ends)
      : stages_(stages), begin_(begin), end_(end), stages_behind_(stages_behind), ends_(ends) {}

  /// The fastest strategies at the least price of memory at which they fit, mixed with those at the
  /// next lower price.
  void search_prices(double most_workspace);
  void recompute_less();
  std::optional<SolvedStage> result() const;

 private:
  /// True if it fits.
  bool consider(const Choice& choice);
  void mix(const Choice& first, const Choice& second);

  const ChainStages& stages_;
  std::size_t begin_, end_, stages_behind_;
  StageEnds ends_;
  Choice best_;
  double best_seconds_ = kNever;
};

bool ChainStages::StageSearch::consider(const Choice& choice) {
  const Evaluation value = stages_.evaluate(begin_, choice, stages_behind_, ends_);
  if (value.seconds == kNever ||
      value.bytes > static_cast<double>(stages_.problem_.device_memory.value))
    return false;
  if (value.seconds < best_seconds_) {
    best_seconds_ = value.seconds;
    best_ = choice;
  }
  return true;
}

void ChainStages::StageSearch::search_prices(double most_workspace) {
  const std::vector<double> prices = stages_.prices_of(stages_behind_);
  const auto choice_at = [&](double per_byte) {
    return stages_.cheapest(
        begin_, end_, stages_.price_operators(per_byte, stages_behind_, most_workspace), ends_);
  };
  std::size_t low = 0, high = prices.size() - 1;
  Choice fast = choice_at(prices[low]);
  if (consider(fast)) return;
  Choice small = choice_at(prices[high]);
  if (!consider(small)) return;
  while (high - low > 1) {
    const std::size_t middle = (low + high) / 2;
    Choice choice = choice_at(prices[middle]);
    const bool fits = consider(choice);
    (fits ? high : low) = middle;
    (fits ? small : fast) = std::move(choice);
  }
  double low_price = prices[low], high_price = prices[high];
  for (int step = 0; step < kBisections; ++step) {
    const double price = (low_price + high_price) / 2;
    Choice choice = choice_at(price);
    const bool fits = choice == small || (choice != fast && consider(choice));
    (fits ? high_price : low_price) = price;
    (fits ? small : fast) = std::move(choice);
  }
  mix(fast, small);
  mix(small, fast);
}

/// All strategies of `first` up to some operator, and of `second` from it on.
void ChainStages::StageSearch::mix(const Choice& first, const Choice& second) {
  Choice mixed = second;
  for (std::size_t i = 0; i + 1 < mixed.size(); ++i) {
    mixed[i] = first[i];
    consider(mixed);
  }
}

void ChainStages::StageSearch::recompute_less() {
  double before = kNever;
  while (best_seconds_ < before) {
    before = best_seconds_;
    const Choice current = best_;
    for (std::size_t i = 0; i < current.size(); ++i) {
      if (current[i] % 2 == 0) continue;
      Choice less = current;
      less[i] = static_cast<std::uint8_t>(less[i] - 1);
      consider(less);
    }
  }
}

std::optional<SolvedStage> ChainStages::StageSearch::result() const {
  if (best_.empty()) return std::nullopt;
  SolvedStage stage{best_seconds_, {}};
  for (std::size_t i = 0; i < best_.size(); ++i) {
    stage.strategies.push_back(stages_.options(begin_ + i)[best_[i] / 2].strategy);
    stage.strategies.back().is_recomputed = best_[i] % 2 == 1;
  }
  return stage;
}

std::optional<SolvedStage> ChainStages::solve(std::size_t begin, std::size_t end,
                                              std::size_t stages_behind, StageEnds ends) const {
  StageSearch search(*this, begin, end, stages_behind, ends);
  for (const double most_workspace : workspace_levels(begin, end))
    search.search_prices(most_workspace);
  search.recompute_less();
  return search.result();
}

}  // namespace meshwright
