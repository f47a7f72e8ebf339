#include "planner/partition/pipeline_search.hpp"

#include <algorithm>
#include <cmath>

namespace meshwright {
namespace {

/// Of the first thresholds to the least possible one, and how fast that grows.
constexpr double kFirstSlack = 1.1, kMoreSlack = 1.2;

}  // namespace

PipelineSearch::PipelineSearch(const ChainProblem& problem, int microbatch,
                               const std::vector<std::size_t>& cuts,
                               const std::function<bool()>& stops)
    : problem_(problem), stops_(stops), microbatch_(microbatch), cuts_(cuts) {
  const int microbatches = problem.global_batch / microbatch;
  microbatches_ = microbatches;
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

const ChainStages& PipelineSearch::stages_on(int log_devices) const {
  return std::ranges::find(devices_, log_devices, &std::pair<int, ChainStages>::first)->second;
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
  times.bounds =
      stages_on(key.log_devices)
          .bounds(static_cast<std::size_t>(key.begin), static_cast<std::size_t>(key.behind),
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

ChainPipeline PipelineSearch::best_pipeline(double threshold, StageEstimate estimate) {
  const auto seconds_of = [&](const StageSeconds& stage, bool ends) -> const std::vector<double>& {
    return (estimate == StageEstimate::kFound ? stage.times : stage.bounds)[ends];
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
    if (stops_()) return {};
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
                                    StageEstimate estimate, const Visit& visit) {
  const ChainPipeline pipeline = best_pipeline(high, estimate);
  if (steps(low) + pipeline.sum >= limit) return;
  if (high <= low * step) return visit(low, high, pipeline);
  const double middle = std::sqrt(low * high);
  for_each_range(low, middle, step, limit, estimate, visit);
  for_each_range(middle, high, step, limit, estimate, visit);
}

void PipelineSearch::for_each_range(double step, const double& limit, StageEstimate estimate,
                                    const Visit& visit) {
  double low = least_threshold_, slack = kFirstSlack;
  while (steps(low) + low < limit && low < most_threshold_ && !stops_()) {
    const double high = std::min(low * slack, limit / std::max(1.0, microbatches_ - 1));
    if (high > most_seconds_) set_most_seconds(high);
    for_each_range(low, high, step, limit, estimate, visit);
    low = high;
    slack *= kMoreSlack;
  }
}

bool PipelineSearch::is_slower_than(double best) {
  if (best == kNoSeconds || microbatches_ <= 1) return false;
  has_few_prices_ = true;
  set_most_seconds(best / (microbatches_ - 1));
  const ChainPipeline pipeline = best_pipeline(most_seconds_, StageEstimate::kBound);
  has_few_prices_ = false;
  most_seconds_ = 0;
  return steps(least_threshold_) + pipeline.sum >= best;
}

double PipelineSearch::bound(double best, double step) {
  double result = best;
  bool is_first = true;
  for_each_range(step, result, StageEstimate::kBound,
                 [&](double low, double, const ChainPipeline& pipeline) {
                   if (is_first) least_threshold_ = low;
                   is_first = false;
                   result = std::min(result, steps(low) + pipeline.sum);
                 });
  return result;
}

std::optional<ChainPlan> PipelineSearch::solve(double best, double step) {
  std::optional<ChainPlan> plan;
  for_each_range(step, best, StageEstimate::kFound, [&](double, double high, const ChainPipeline&) {
    while (!stops_()) {
      const ChainPipeline pipeline = best_pipeline(high, StageEstimate::kFound);
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
      best_pipeline(least_threshold_ * kCoarseStep, StageEstimate::kBound);
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
    auto solved =
        stages_on(stage.log_devices)
            .solve(static_cast<std::size_t>(stage.begin), static_cast<std::size_t>(stage.end),
                   static_cast<std::size_t>(behind), ends);
    if (!solved) continue;
    seconds = solved->seconds;
    solved_[id(key, operators, ends.ends_node)] = std::move(*solved);
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

}  // namespace meshwright
