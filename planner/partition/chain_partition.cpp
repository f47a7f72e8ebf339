#include "planner/partition/chain_partition.hpp"

#include <algorithm>
#include <memory>
#include <numeric>

#include "planner/partition/pipeline_search.hpp"

namespace meshwright {
namespace {

constexpr std::size_t kMostExactOperators = 600;  ///< of chains with a cut before every operator
constexpr std::size_t kMostCuts = 200;            ///< of longer ones
constexpr double kSmallGap = 2e-3;                ///< that finer steps can close

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

  ChainPlan plan{.time = Seconds(kNoSeconds)};  ///< without stages: none was found

 private:
  double best_seconds() const { return plan.time.value; }
  void consider(const std::optional<ChainPlan>& other) {
    if (other && other->time.value < best_seconds()) plan = *other;
  }

  const ChainProblem& problem_;
  const std::function<bool()>& stops_;
};

double ChainSearch::search(const std::vector<std::size_t>& cuts, bool is_bound_wanted) {
  std::vector<std::unique_ptr<PipelineSearch>> searches;
  for (const int size : pipeline_microbatches(problem_)) {
    auto search = std::make_unique<PipelineSearch>(problem_, size, cuts, stops_);
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
      consider(search->solve(best_seconds(), kFineStep));
      if (is_bound_wanted && own_bound >= best_seconds() * (1 - kSmallGap))
        own_bound = search->bound(best_seconds(), kFinestStep);
    }
    bound = std::min(bound, own_bound);
  }
  return stops_() ? 0 : std::min(bound, best_seconds());
}

double work_bound(const ChainProblem& problem) {
  const std::function<bool()> never_stops = [] { return false; };
  double least = kNoSeconds;
  for (const int size : pipeline_microbatches(problem)) {
    const PipelineSearch search(problem, size, {0, problem.chain.size()}, never_stops);
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
  if (!has_all_cuts || stops()) bound = work_bound(problem);
  if (search.plan.stages.empty()) return std::nullopt;
  const Seconds lower_bound(std::min(bound, search.plan.time.value));
  return ChainPartition{std::move(search.plan), lower_bound};
}

}  // namespace meshwright
