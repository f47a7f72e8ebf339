#include "planner/partition/chain_partition.hpp"

#include <algorithm>
#include <memory>
#include <numeric>

#include "planner/parallel/parallel_for.hpp"
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

  static constexpr std::size_t kAtATime = 2;
  const ChainProblem& problem_;
  const std::function<bool()>& stops_;
  ThreadTeam threads_{kAtATime};
};

/// Pairs of micro-batch sizes are searched at the same time, each with the best plan before the
/// pair: results do not depend on the number of threads.
double ChainSearch::search(const std::vector<std::size_t>& cuts, bool is_bound_wanted) {
  const std::vector<int> sizes = pipeline_microbatches(problem_);
  std::vector<std::unique_ptr<PipelineSearch>> searches(sizes.size());
  threads_.for_each(sizes.size(), [&](std::size_t i) {
    searches[i] = std::make_unique<PipelineSearch>(problem_, sizes[i], cuts, stops_);
  });
  std::erase_if(searches, [](const auto& search) { return !search->exists(); });
  struct Candidate {
    double bound = kNoSeconds;
    PipelineSearch* search = nullptr;
    std::optional<ChainPlan> plan = {};
  };
  std::vector<Candidate> order;
  for (const auto& search : searches) order.push_back({.search = search.get()});
  const auto in_pairs = [&](const std::function<void(Candidate&, double best)>& visit) {
    for (std::size_t first = 0; first < order.size() && !stops_(); first += kAtATime) {
      const std::size_t count = std::min(kAtATime, order.size() - first);
      const double best = best_seconds();
      threads_.for_each(count, [&](std::size_t i) { visit(order[first + i], best); });
      for (std::size_t i = first; i < first + count; ++i) consider(order[i].plan);
    }
  };
  in_pairs([](Candidate& candidate, double best) {
    if (candidate.search->is_slower_than(best)) return;
    candidate.bound = candidate.search->bound(best, kCoarseStep);
    if (candidate.bound < best) candidate.plan = candidate.search->first_plan();
  });
  std::erase_if(order, [](const Candidate& each) { return each.bound == kNoSeconds; });
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.bound < b.bound; });
  in_pairs([&](Candidate& candidate, double best) {
    if (candidate.bound >= best) return;
    if (is_bound_wanted) candidate.bound = candidate.search->bound(best, kFineStep);
    candidate.plan = candidate.search->solve(best, kFineStep);
    const double own = candidate.plan ? std::min(best, candidate.plan->time.value) : best;
    if (is_bound_wanted && candidate.bound >= own * (1 - kSmallGap))
      candidate.bound = candidate.search->bound(own, kFinestStep);
  });
  double bound = best_seconds();  // those that are slower are no better than the best
  for (const Candidate& each : order) bound = std::min(bound, each.bound);
  return stops_() ? 0 : bound;
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
