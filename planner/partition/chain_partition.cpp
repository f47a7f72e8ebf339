#include "planner/partition/chain_partition.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <unordered_map>

#include "planner/partition/chain_stages.hpp"

namespace meshwright {
namespace {

constexpr double kNoSeconds = std::numeric_limits<double>::infinity();
constexpr std::size_t kMostExactOperators = 600;  ///< of chains with a cut before every operator
constexpr std::size_t kMostCuts = 200;            ///< of longer ones
constexpr double kCoarseStep = 1.02, kFineStep = 1.0005;
/// Of the first thresholds to the least possible one, and how fast that grows.
constexpr double kFirstSlack = 1.1, kMoreSlack = 1.2;

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
/// Whether stages with strategies have the times of these.
enum class Strategies : std::uint8_t { kIgnored, kUsed };

/// Pipelines with one size of micro-batches.
class PipelineSearch {
 public:
  /// `cuts`: the positions at which stages can begin or end, ascending, from the first to the last.
  PipelineSearch(const ChainProblem& problem, int microbatch, const std::vector<std::size_t>& cuts);

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
  std::optional<ChainPlan> solve(double best, double step, const std::function<bool()>& stops);
  std::int64_t stages_solved() const { return static_cast<std::int64_t>(solved_.size()); }

 private:
  struct Key {
    std::int32_t log_devices, behind, begins_node, begin;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Front;

  double steps(double threshold) const { return threshold * (microbatches_ - 1); }
  std::size_t last() const { return problem_.chain.size(); }
  /// Sets the longest stages that are bounded.
  void set_most_seconds(double seconds);
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
  ChainPipeline best_pipeline(double threshold, Strategies strategies);
  using Visit = std::function<void(double low, double high, const ChainPipeline&)>;
  /// Calls visit(low, high, best pipeline at most as slow as high) for small ranges (low, high] of
  /// the slowest stage, ascending, where a step can be less than `limit`, which visits can lower.
  void for_each_range(double step, const double& limit, Strategies strategies, const Visit& visit);
  void for_each_range(double low, double high, double step, const double& limit,
                      Strategies strategies, const Visit& visit);
  bool solve_stages(const ChainPipeline& pipeline);
  std::uint64_t id(const Key& key, std::size_t operators, bool ends_node) const;
  std::optional<ChainPlan> plan_of(const ChainPipeline& pipeline) const;

  const ChainProblem& problem_;
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

PipelineSearch::PipelineSearch(const ChainProblem& problem, int microbatch,
                               const std::vector<std::size_t>& cuts)
    : problem_(problem), microbatch_(microbatch), cuts_(cuts) {
  microbatches_ = problem.global_batch / microbatch;
  for (int log = 0; 1 << log <= problem.devices_per_node; ++log) {
    ChainStages stages(problem, microbatch, 1 << log, cuts);
    if (stages.exist()) devices_.emplace_back(log, std::move(stages));
  }
  if (!exists()) return;
  work_.assign(last() + 1, 0);
  double state = 0;
  for (std::size_t i = 0; i < last(); ++i) {
    double work = kNoSeconds, bytes = kNoSeconds, most = 0;
    for (const auto& [log, stages] : devices_) {
      const ChainStages::OperatorRange& range = stages.range(i);
      work = std::min(work, range.work);
      bytes = std::min(bytes, range.state);
      most = std::max(most, range.most_seconds);
    }
    work_[i + 1] = work_[i] + work;
    state += bytes;
    most_threshold_ += most;
  }
  const double memory = static_cast<double>(problem.device_memory.value) * problem.devices();
  if (state > memory || work_.back() <= 0) devices_.clear();
  for (const std::size_t position : cuts_) cut_work_.push_back(work_[position]);
  least_threshold_ = work_.back() / problem.devices();
}

void PipelineSearch::set_most_seconds(double seconds) {
  most_seconds_ = seconds;
  times_.clear();
  solved_.clear();
  // Positions are alike if the operators of the longest stages are.
  for (const auto& [log, stages] : devices_) {
    std::size_t longest = 1;
    for (std::size_t begin = 0, end = 0; begin < last(); ++begin) {
      while (end < last() && work_[end] - work_[begin] <= seconds * (1 << log)) ++end;
      longest = std::max(longest, end - begin + 1);
    }
    std::vector<std::int32_t>& alike = alike_[log];
    alike.resize(last());
    const auto begin = problem_.chain.begin();
    for (std::size_t i = 0; i < last(); ++i) {
      const std::size_t size = std::min(longest, last() - i);
      std::size_t j = 0;
      while (j < i &&
             !(alike[j] == static_cast<std::int32_t>(j) && std::min(longest, last() - j) == size &&
               std::equal(begin + static_cast<std::ptrdiff_t>(i),
                          begin + static_cast<std::ptrdiff_t>(i + size),
                          begin + static_cast<std::ptrdiff_t>(j))))
        ++j;
      alike[i] = static_cast<std::int32_t>(j);
    }
  }
}

std::uint64_t PipelineSearch::id(const Key& key, std::size_t operators, bool ends_node) const {
  static_assert(kMostChainOperators <= 1 << 13 && kMostChainDevices <= 1 << 10);
  std::uint64_t id = operators;
  const auto append = [&](std::int32_t part, int bits) {
    id = id << bits | static_cast<std::uint64_t>(part);
  };
  append(key.begin, 13);
  append(key.behind, 10);
  append(key.log_devices, 4);
  append(key.begins_node, 1);
  append(ends_node ? 1 : 0, 1);
  return id;
}

std::vector<StageSeconds>& PipelineSearch::all_times(const Key& key) {
  std::vector<StageSeconds>& all =
      times_[id({key.log_devices, key.behind, key.begins_node, 0}, 0, false)];
  all.resize(last());
  return all;
}

StageSeconds& PipelineSearch::times(const Key& key, std::vector<StageSeconds>& all) {
  StageSeconds& times = all[static_cast<std::size_t>(key.begin)];
  if (!times.bounds[0].empty()) return times;
  for (const auto& [log, stages] : devices_)
    if (log == key.log_devices)
      times.bounds =
          stages.bounds(static_cast<std::size_t>(key.begin), static_cast<std::size_t>(key.behind),
                        key.begins_node != 0, most_seconds_, has_few_prices_);
  times.times = times.bounds;
  for (std::size_t ends = 0; ends < 2; ++ends)
    times.is_solved[ends].assign(times.bounds[ends].size(), false);
  return times;
}

/// The least sums of the times of the last stages, by the cut before them.
struct PipelineSearch::Front {
  /// The first of the stages: its devices, and the cut at its end.
  struct First {
    int log_devices = 0;
    std::size_t end = 0;
  };
  std::size_t low = 0, high = 0;  ///< cuts, inclusive
  std::vector<double> sum;
  std::vector<First> first;
};

ChainPipeline PipelineSearch::best_pipeline(double threshold, Strategies strategies) {
  const auto seconds_of = [&](const StageSeconds& stage, bool ends) -> const std::vector<double>& {
    return (strategies == Strategies::kUsed ? stage.times : stage.bounds)[ends];
  };
  const int all = problem_.devices();
  const double tolerance = 1e-9 * work_.back();
  const auto range = [&](int behind) {
    Front front;
    const double most_before = (all - behind) * threshold + tolerance;
    const double least_before = work_.back() - behind * threshold - tolerance;
    front.low = static_cast<std::size_t>(
        std::lower_bound(cut_work_.begin(), cut_work_.end(), least_before) - cut_work_.begin());
    front.high = static_cast<std::size_t>(
        std::upper_bound(cut_work_.begin(), cut_work_.end(), most_before) - cut_work_.begin());
    if (front.high > 0) --front.high;
    front.high = std::min(front.high, cuts_.size() - 2);
    if (behind == all) front.low = front.high = 0;
    return front;
  };
  ChainPipeline best;
  // By number of stages and of devices behind.
  std::vector<std::vector<Front>> fronts(1);
  fronts[0].resize(static_cast<std::size_t>(all) + 1);
  fronts[0][0] = {cuts_.size() - 1, cuts_.size() - 1, {0}, {{}}};
  std::size_t best_count = 0;
  for (int behind = 0; behind < all; ++behind) {
    fronts.emplace_back(static_cast<std::size_t>(all) + 1);
    bool any = false;
    for (int used = behind; used < all; ++used) {
      const Front& right = fronts[static_cast<std::size_t>(behind)][static_cast<std::size_t>(used)];
      if (right.sum.empty()) continue;
      const bool ends = ends_node(used);
      for (const auto& [log, stages] : devices_) {
        const int total = used + (1 << log);
        if (used % problem_.devices_per_node + (1 << log) > problem_.devices_per_node ||
            total > all)
          continue;
        Front& left = fronts[static_cast<std::size_t>(behind) + 1][static_cast<std::size_t>(total)];
        if (left.sum.empty()) {
          left = range(total);
          if (left.low > left.high) continue;
          left.sum.assign(left.high - left.low + 1, kNoSeconds);
          left.first.resize(left.sum.size());
        }
        // Only between the first and the last cut with a pipeline.
        const auto has_pipeline = [](double sum) { return sum < kNoSeconds; };
        const auto first_sum = std::find_if(right.sum.begin(), right.sum.end(), has_pipeline);
        if (first_sum == right.sum.end()) continue;
        const auto last_sum = std::find_if(right.sum.rbegin(), right.sum.rend(), has_pipeline);
        const auto low = right.low + static_cast<std::size_t>(first_sum - right.sum.begin());
        const auto high = right.high - static_cast<std::size_t>(last_sum - right.sum.rbegin());
        const std::vector<std::int32_t>& alike = alike_.at(log);
        std::vector<StageSeconds>& all_times =
            this->all_times({log, behind, begins_node(total), 0});
        for (std::size_t j = left.low; j <= left.high; ++j) {
          const std::size_t begin = std::max(low, j + 1);
          if (begin > high) continue;
          const std::vector<double>& seconds = seconds_of(
              times({log, behind, begins_node(total), alike[cuts_[j]]}, all_times), ends);
          double& sum = left.sum[j - left.low];
          for (std::size_t i = begin; i <= high; ++i) {
            const std::size_t operators = cuts_[i] - cuts_[j];
            if (operators > seconds.size()) break;
            const double stage = seconds[operators - 1];
            const double value = right.sum[i - right.low] + stage;
            if (value >= sum || stage > threshold) continue;
            sum = value;
            left.first[j - left.low] = {log, i};
            any = true;
          }
        }
      }
    }
    const Front& whole =
        fronts[static_cast<std::size_t>(behind) + 1][static_cast<std::size_t>(all)];
    if (!whole.sum.empty() && whole.sum[0] < best.sum) {
      best.sum = whole.sum[0];
      best_count = static_cast<std::size_t>(behind) + 1;
    }
    if (!any) break;
  }
  std::size_t cut = 0;
  int used = all;
  for (std::size_t count = best_count; count > 0; --count) {
    const Front& front = fronts[count][static_cast<std::size_t>(used)];
    const Front::First first = front.first[cut - front.low];
    const std::size_t begin = cuts_[cut], end = cuts_[first.end];
    best.stages.push_back(
        {first.log_devices, static_cast<std::int32_t>(begin), static_cast<std::int32_t>(end)});
    const int left = used - (1 << first.log_devices);
    const StageSeconds& stage = times({first.log_devices, static_cast<std::int32_t>(count) - 1,
                                       begins_node(used), alike_.at(first.log_devices)[begin]});
    best.slowest = std::max(best.slowest, seconds_of(stage, ends_node(left))[end - begin - 1]);
    cut = first.end;
    used = left;
  }
  return best;
}

void PipelineSearch::for_each_range(double low, double high, double step, const double& limit,
                                    Strategies strategies, const Visit& visit) {
  const ChainPipeline pipeline = best_pipeline(high, strategies);
  if (steps(low) + pipeline.sum >= limit) return;
  if (high <= low * step) return visit(low, high, pipeline);
  const double middle = std::sqrt(low * high);
  for_each_range(low, middle, step, limit, strategies, visit);
  for_each_range(middle, high, step, limit, strategies, visit);
}

void PipelineSearch::for_each_range(double step, const double& limit, Strategies strategies,
                                    const Visit& visit) {
  double low = least_threshold_, slack = kFirstSlack;
  while (steps(low) + low < limit && low < most_threshold_) {
    const double high = std::min(low * slack, limit / std::max(1.0, microbatches_ - 1));
    if (high > most_seconds_) set_most_seconds(high);
    for_each_range(low, high, step, limit, strategies, visit);
    low = high;
    slack *= kMoreSlack;
  }
}

bool PipelineSearch::is_slower_than(double best) {
  if (best == kNoSeconds || microbatches_ <= 1) return false;
  has_few_prices_ = true;
  set_most_seconds(best / (microbatches_ - 1));
  const ChainPipeline pipeline = best_pipeline(most_seconds_, Strategies::kIgnored);
  has_few_prices_ = false;
  most_seconds_ = 0;
  return steps(least_threshold_) + pipeline.sum >= best;
}

double PipelineSearch::bound(double best, double step) {
  double result = best;
  bool is_first = true;
  for_each_range(step, result, Strategies::kIgnored,
                 [&](double low, double, const ChainPipeline& pipeline) {
                   if (is_first) least_threshold_ = low;
                   is_first = false;
                   result = std::min(result, steps(low) + pipeline.sum);
                 });
  return result;
}

std::optional<ChainPlan> PipelineSearch::solve(double best, double step,
                                               const std::function<bool()>& stops) {
  std::optional<ChainPlan> plan;
  for_each_range(step, best, Strategies::kUsed, [&](double, double high, const ChainPipeline&) {
    while (!stops()) {
      const ChainPipeline pipeline = best_pipeline(high, Strategies::kUsed);
      if (pipeline.stages.empty() || steps(pipeline.slowest) + pipeline.sum >= best) return;
      if (!solve_stages(pipeline)) continue;
      plan = plan_of(pipeline);
      best = std::min(plan->time.value, steps(pipeline.slowest) + pipeline.sum);  // rounding
    }
    best = 0;  // ends the search
  });
  return plan;
}

std::optional<ChainPlan> PipelineSearch::first_plan() {
  const ChainPipeline pipeline =
      best_pipeline(least_threshold_ * kCoarseStep, Strategies::kIgnored);
  if (pipeline.stages.empty()) return std::nullopt;
  solve_stages(pipeline);
  return plan_of(pipeline);
}

/// Finds strategies of the stages that have none; true if all had.
bool PipelineSearch::solve_stages(const ChainPipeline& pipeline) {
  bool all_solved = true;
  int used = problem_.devices();
  auto behind = static_cast<std::int32_t>(pipeline.stages.size());
  for (const ChainStageChoice& stage : pipeline.stages) {
    --behind;
    const bool begins = begins_node(used);
    used -= 1 << stage.log_devices;
    const StageEnds ends{begins, ends_node(used)};
    const Key key{stage.log_devices, behind, begins,
                  alike_.at(stage.log_devices)[static_cast<std::size_t>(stage.begin)]};
    const auto operators = static_cast<std::size_t>(stage.end - stage.begin);
    StageSeconds& times = this->times(key);
    if (times.is_solved[ends.ends_node][operators - 1]) continue;
    all_solved = false;
    times.is_solved[ends.ends_node][operators - 1] = true;
    double& seconds = times.times[ends.ends_node][operators - 1];
    seconds = kNoSeconds;
    for (const auto& [log, stages] : devices_)
      if (log == stage.log_devices)
        if (auto solved = stages.solve(static_cast<std::size_t>(stage.begin),
                                       static_cast<std::size_t>(stage.end),
                                       static_cast<std::size_t>(behind), ends)) {
          seconds = solved->seconds;
          solved_[id(key, operators, ends.ends_node)] = std::move(*solved);
        }
  }
  return all_solved;
}

std::optional<ChainPlan> PipelineSearch::plan_of(const ChainPipeline& pipeline) const {
  ChainPlan plan{.microbatch = microbatch_};
  int used = problem_.devices();
  auto behind = static_cast<std::int32_t>(pipeline.stages.size());
  for (const ChainStageChoice& stage : pipeline.stages) {
    --behind;
    const Key key{stage.log_devices, behind, begins_node(used),
                  alike_.at(stage.log_devices)[static_cast<std::size_t>(stage.begin)]};
    used -= 1 << stage.log_devices;
    const auto found =
        solved_.find(id(key, static_cast<std::size_t>(stage.end - stage.begin), ends_node(used)));
    if (found == solved_.end()) return std::nullopt;
    const SolvedStage& solved = found->second;
    plan.strategies.insert(plan.strategies.end(), solved.strategies.begin(),
                           solved.strategies.end());
    plan.stages.push_back({.begin = static_cast<std::size_t>(stage.begin),
                           .end = static_cast<std::size_t>(stage.end),
                           .devices = 1 << stage.log_devices});
  }
  price_chain(problem_, plan);
  return plan;
}

/// Micro-batch sizes of pipelines that divide the batch.
std::vector<int> pipeline_microbatches(const ChainProblem& problem) {
  std::vector<int> sizes;
  for (const int microbatch : problem.microbatches)
    for (int data = 1; data <= problem.devices_per_node; data *= 2) {
      const std::int64_t size = std::int64_t{microbatch} * data;
      if (size <= problem.global_batch && problem.global_batch % size == 0)
        sizes.push_back(static_cast<int>(size));
    }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

/// The cuts with the smallest messages, about kMostCuts.
std::vector<std::size_t> small_cuts(const ChainProblem& problem) {
  std::vector<std::pair<std::int64_t, std::size_t>> messages;
  for (std::size_t i = 1; i < problem.chain.size(); ++i) {
    const ChainOperator& op = problem.operators[static_cast<std::size_t>(problem.chain[i])];
    messages.emplace_back(problem.costs(op, 0, 0, 0).input.value, i);
  }
  std::sort(messages.begin(), messages.end());
  std::vector<std::size_t> cuts{0};
  for (const auto& [bytes, position] : messages) {
    if (cuts.size() > kMostCuts && bytes > messages[kMostCuts - 1].first) break;
    cuts.push_back(position);
  }
  cuts.push_back(problem.chain.size());
  std::sort(cuts.begin(), cuts.end());
  return cuts;
}

/// The best plan with given cuts, and a bound of all.
class ChainSearch {
 public:
  ChainSearch(const ChainProblem& problem, const std::function<bool()>& stops)
      : problem_(problem), stops_(stops) {}

  /// Returns a bound of plans with these cuts, up to the best plan so far.
  double search(const std::vector<std::size_t>& cuts, bool is_bound_wanted);

  std::optional<ChainPlan> plan;
  std::int64_t stages_solved = 0;

 private:
  double best_seconds() const { return plan ? plan->time.value : kNoSeconds; }
  void consider(std::optional<ChainPlan> other) {
    if (other && other->time.value < best_seconds()) plan = std::move(other);
  }

  const ChainProblem& problem_;
  const std::function<bool()>& stops_;
};

double ChainSearch::search(const std::vector<std::size_t>& cuts, bool is_bound_wanted) {
  std::vector<std::unique_ptr<PipelineSearch>> searches;
  for (const int size : pipeline_microbatches(problem_)) {
    auto search = std::make_unique<PipelineSearch>(problem_, size, cuts);
    if (search->exists()) searches.push_back(std::move(search));
  }
  std::vector<std::pair<double, PipelineSearch*>> order;  // by coarse bounds
  for (const auto& search : searches) {
    if (stops_()) return 0;
    if (search->is_slower_than(best_seconds())) continue;
    order.emplace_back(search->bound(best_seconds(), kCoarseStep), search.get());
    if (order.back().first < best_seconds()) consider(search->first_plan());
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  double bound = kNoSeconds;  // those that are slower are no better than the best
  for (const auto& [coarse_bound, search] : order) {
    double own_bound = coarse_bound;
    if (own_bound < best_seconds()) {
      if (is_bound_wanted) own_bound = search->bound(best_seconds(), kFineStep);
      consider(search->solve(best_seconds(), kFineStep, stops_));
    }
    bound = std::min(bound, own_bound);
    stages_solved += search->stages_solved();
  }
  return stops_() ? 0 : std::min(bound, best_seconds());
}

double work_bound(const ChainProblem& problem) {
  double least = kNoSeconds;
  for (const int size : pipeline_microbatches(problem)) {
    const PipelineSearch search(problem, size, {0, problem.chain.size()});
    if (search.exists()) least = std::min(least, search.work_bound());
  }
  return least;
}

}  // namespace

std::optional<ChainPartition> partition_chain(const ChainProblem& problem,
                                              const std::function<bool()>& stops) {
  ChainSearch search(problem, stops);
  std::vector<std::size_t> cuts(problem.chain.size() + 1);
  std::iota(cuts.begin(), cuts.end(), std::size_t{0});
  const bool has_all_cuts = problem.chain.size() <= kMostExactOperators;
  double bound = search.search(has_all_cuts ? cuts : small_cuts(problem), has_all_cuts);
  if (!has_all_cuts) bound = work_bound(problem);
  if (!search.plan) return std::nullopt;
  const Seconds lower_bound(std::min(bound, search.plan->time.value));
  return ChainPartition{std::move(*search.plan), lower_bound, search.stages_solved};
}

}  // namespace meshwright
