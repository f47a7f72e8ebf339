#include "planner/partition/pipedream_partition.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "core/base/check.hpp"
#include "core/base/indices.hpp"
#include "planner/partition/pipedream_cuts.hpp"

namespace meshwright {
namespace {

constexpr double kNotPossible = std::numeric_limits<double>::infinity();

/// Seconds of a stage of `replicas`. `entry` and `exit` are bytes; the all-reduce is divided by
/// `reduce_share`.
struct StageTerms {
  double work = 0, parameters = 0, entry = 0, exit = 0, reduce_share = 1;
  double time(int replicas, double bandwidth) const {
    const double reduce = 4 * (replicas - 1) * parameters / (bandwidth * replicas) / reduce_share;
    return std::max((work + reduce) / replicas, 2 * std::max(entry, exit) / (bandwidth * replicas));
  }
};

/// Stages between some cuts, with times below a limit.
class PipeDreamSearch {
 public:
  PipeDreamSearch(const PipeDreamProblem& problem, const PipeDreamCuts& cuts, double limit);
  /// Empty if no stages are below the limit.
  std::optional<std::vector<PipeDreamStage>> run();
  std::size_t cut_count() const { return cuts_.size(); }

 private:
  /// Stages from the begin of a row to a cut on a number of groups.
  struct Cell {
    double time = kNotPossible;
    std::int32_t from = -1;  ///< begin of the last stage
    std::int32_t replicas = 0;
  };
  using Row = std::vector<Cell>;  ///< by cut, groups

  int size(std::size_t level) const { return problem_.levels[level].size; }
  std::size_t cell_at(std::size_t level, std::size_t cut, int groups) const {
    return cut * static_cast<std::size_t>(size(level) + 1) + static_cast<std::size_t>(groups);
  }
  /// Of a stage of the level above that has the time of the outer limit on all its replicas.
  double limit_of(std::size_t level) const;
  double work_between(std::size_t level, std::size_t begin, std::size_t end);
  Row solve(std::size_t level, std::size_t begin);
  void extend(std::size_t level, std::size_t begin, std::size_t from, std::size_t to, Row& row);
  bool is_hopeless(std::size_t level, std::size_t cut, int groups) const;
  std::vector<PipeDreamStage> stages_of(std::size_t level, std::size_t begin, std::size_t end);
  const Cell& best_of(std::size_t level, std::size_t end, const Row& row, int& groups) const;

  const PipeDreamProblem& problem_;
  std::vector<const PipeDreamCut*> cuts_;
  double limit_;
  double devices_ = 1;  ///< of all levels
  /// By level but the outermost, begin: the best time to each cut; empty until it is needed.
  std::vector<std::vector<std::vector<double>>> best_times_;
};

PipeDreamSearch::PipeDreamSearch(const PipeDreamProblem& problem, const PipeDreamCuts& cuts,
                                 double limit)
    : problem_(problem), limit_(limit) {
  // Transfers use the links of some level, at most all of them.
  double fastest = 0;
  for (std::size_t level = problem.levels.size(); level-- > 0;) {
    devices_ *= size(level);  // so far groups of this level
    fastest = std::max(fastest, problem.levels[level].bandwidth.value * devices_);
  }
  for (const PipeDreamCut& cut : cuts)
    if (2 * cut.crossing / fastest < limit) cuts_.push_back(&cut);
  best_times_.resize(problem.levels.size() - 1);
  for (auto& rows : best_times_) rows.resize(cuts_.size());
}

double PipeDreamSearch::limit_of(std::size_t level) const {
  double limit = limit_;
  for (std::size_t outer = level + 1; outer < problem_.levels.size(); ++outer) limit *= size(outer);
  return limit;
}

double PipeDreamSearch::work_between(std::size_t level, std::size_t begin, std::size_t end) {
  if (level == 0) return cuts_[end]->time - cuts_[begin]->time;
  std::vector<double>& times = best_times_[level - 1][begin];
  if (times.empty()) {
    const Row row = solve(level - 1, begin);
    times.resize(cuts_.size(), kNotPossible);
    int groups = 0;
    for (std::size_t cut = begin + 1; cut < cuts_.size(); ++cut)
      times[cut] = best_of(level - 1, cut, row, groups).time;
  }
  return times[end];
}

/// The rest of the graph does not fit on the other groups of the outermost level.
bool PipeDreamSearch::is_hopeless(std::size_t level, std::size_t cut, int groups) const {
  if (level + 1 < problem_.levels.size()) return false;
  double devices = size(level) - groups;
  for (std::size_t inner = 0; inner < level; ++inner) devices *= size(inner);
  constexpr double kRounding = 1 - 1e-9;
  return (cuts_.back()->time - cuts_[cut]->time) * kRounding >= devices * limit_;
}

void PipeDreamSearch::extend(std::size_t level, std::size_t begin, std::size_t from, std::size_t to,
                             Row& row) {
  const bool is_first = from == begin;
  const double limit = limit_of(level), bandwidth = problem_.levels[level].bandwidth.value;
  const StageTerms terms{.work = work_between(level, from, to),
                         .parameters = cuts_[to]->parameters - cuts_[from]->parameters,
                         .entry = is_first ? 0 : cuts_[from]->crossing,
                         .exit = is_first ? 0 : cuts_[to]->crossing,
                         .reduce_share = is_first && level > 0 ? size(level - 1) * 1.0 : 1.0};
  if (terms.work >= limit * size(level)) return;
  for (int replicas = 1; replicas <= size(level); ++replicas) {
    const double time = terms.time(replicas, bandwidth);
    if (time >= limit) continue;
    const int most_before = is_first ? 0 : size(level) - replicas;
    for (int before = is_first ? 0 : 1; before <= most_before; ++before) {
      const double slowest = std::max(time, row[cell_at(level, from, before)].time);
      Cell& cell = row[cell_at(level, to, before + replicas)];
      if (slowest < cell.time)
        cell = {.time = slowest, .from = static_cast<std::int32_t>(from), .replicas = replicas};
    }
  }
}

PipeDreamSearch::Row PipeDreamSearch::solve(std::size_t level, std::size_t begin) {
  Row row(cuts_.size() * static_cast<std::size_t>(size(level) + 1));
  row[cell_at(level, begin, 0)].time = 0;
  for (std::size_t from = begin; from < cuts_.size(); ++from) {
    int fewest = 0;
    while (fewest < size(level) && row[cell_at(level, from, fewest)].time == kNotPossible) ++fewest;
    if (fewest == size(level) || is_hopeless(level, from, fewest)) continue;
    for (std::size_t to = from + 1; to < cuts_.size(); ++to)
      if (cuts_[to]->time - cuts_[from]->time < limit_ * devices_ &&
          cuts_[to]->contains(*cuts_[from]))
        extend(level, begin, from, to, row);
  }
  return row;
}

const PipeDreamSearch::Cell& PipeDreamSearch::best_of(std::size_t level, std::size_t end,
                                                      const Row& row, int& groups) const {
  groups = 0;
  for (int g = 1; g <= size(level); ++g)
    if (row[cell_at(level, end, g)].time < row[cell_at(level, end, groups)].time) groups = g;
  return row[cell_at(level, end, groups)];
}

std::vector<PipeDreamStage> PipeDreamSearch::stages_of(std::size_t level, std::size_t begin,
                                                       std::size_t end) {
  const Row row = solve(level, begin);
  int groups = 0;
  best_of(level, end, row, groups);
  std::vector<PipeDreamStage> stages;
  for (std::size_t cut = end; cut != begin;) {
    const Cell& cell = row[cell_at(level, cut, groups)];
    const auto from = to_index(cell.from);
    PipeDreamStage stage{.nodes = {}, .replicas = cell.replicas, .inner = {}, .time = {}};
    for (std::size_t v = 0; v < problem_.nodes.size(); ++v)
      if (cuts_[cut]->contains(v) && !cuts_[from]->contains(v))
        stage.nodes.push_back(static_cast<std::int32_t>(v));
    if (level > 0) stage.inner = stages_of(level - 1, from, cut);
    stages.push_back(std::move(stage));
    groups -= cell.replicas;
    cut = from;
  }
  std::reverse(stages.begin(), stages.end());
  return stages;
}

std::optional<std::vector<PipeDreamStage>> PipeDreamSearch::run() {
  const std::size_t outermost = problem_.levels.size() - 1, end = cuts_.size() - 1;
  const Row row = solve(outermost, 0);
  int groups = 0;
  if (best_of(outermost, end, row, groups).time == kNotPossible) return std::nullopt;
  return stages_of(outermost, 0, end);
}

/// All work evenly on all devices.
double least_time(const PipeDreamProblem& problem) {
  double work = 0;
  for (const PipeDreamNode& node : problem.nodes) work += node.time.value;
  for (const PipeDreamLevel& level : problem.levels) work /= level.size;
  return work;
}

/// Limits from below until there are stages: low limits leave few cuts, so that failures are fast.
/// Empty if too many pairs of cuts are left.
std::optional<PipeDreamPartition> search_cuts(const PipeDreamProblem& problem,
                                              const PipeDreamCuts& cuts, std::size_t most_cuts) {
  constexpr double kFirstStep = 1.02, kStep = 1.2, kShortest = 1e-9, kRounding = 1 - 1e-12;
  PipeDreamPartition best;
  best.lower_bound = Seconds(least_time(problem) * kRounding);
  for (double limit = std::max(kShortest, best.lower_bound.value * kFirstStep);; limit *= kStep) {
    PipeDreamSearch search(problem, cuts, limit);
    if (search.cut_count() > most_cuts) return std::nullopt;
    if (auto stages = search.run()) {
      best.stages = std::move(*stages);
      best.cuts = static_cast<std::int64_t>(cuts.size());
      best.time = price_stages(problem, best.stages);
      return best;
    }
  }
}

/// Prices stages from their nodes, which it takes in the order of the data flow.
class PipeDreamPricer {
 public:
  explicit PipeDreamPricer(const PipeDreamProblem& problem)
      : problem_(problem), is_done_(problem.nodes.size(), false) {}
  double price(std::size_t level, std::vector<PipeDreamStage>& stages);

 private:
  /// Bytes that nodes to come read from nodes that are done.
  double crossing() const;
  const PipeDreamProblem& problem_;
  std::vector<bool> is_done_;
};

double PipeDreamPricer::crossing() const {
  std::vector<bool> is_read(is_done_.size(), false);
  for (const PartitionEdge& edge : problem_.edges)
    if (is_done_[to_index(edge.source)] && !is_done_[to_index(edge.target)])
      is_read[to_index(edge.source)] = true;
  double bytes = 0;
  for (std::size_t v = 0; v < is_read.size(); ++v)
    if (is_read[v]) bytes += static_cast<double>(problem_.nodes[v].activation.value);
  return bytes;
}

double PipeDreamPricer::price(std::size_t level, std::vector<PipeDreamStage>& stages) {
  double slowest = 0;
  for (PipeDreamStage& stage : stages) {
    const bool is_first = &stage == stages.data();
    StageTerms terms{.entry = is_first ? 0 : crossing()};
    if (level > 0) terms.work = price(level - 1, stage.inner);
    for (const std::int32_t node : stage.nodes) {
      if (level == 0) terms.work += problem_.nodes[to_index(node)].time.value;
      terms.parameters += static_cast<double>(problem_.nodes[to_index(node)].parameters.value);
      is_done_[to_index(node)] = true;
    }
    terms.exit = is_first ? 0 : crossing();
    if (is_first && level > 0) terms.reduce_share = problem_.levels[level - 1].size;
    stage.time = Seconds(terms.time(stage.replicas, problem_.levels[level].bandwidth.value));
    slowest = std::max(slowest, stage.time.value);
  }
  return slowest;
}

}  // namespace

Seconds price_stages(const PipeDreamProblem& problem, std::vector<PipeDreamStage>& stages) {
  return Seconds(PipeDreamPricer(problem).price(problem.levels.size() - 1, stages));
}

PipeDreamPartition partition_as_pipedream(const PipeDreamProblem& problem,
                                          std::size_t most_down_sets) {
  MW_CHECK(!problem.levels.empty());
  constexpr std::size_t kMostCuts = 2 * kMostPipeDreamNodes + 1;  // of two orders of any file
  if (const auto cuts = all_cuts(problem, most_down_sets))
    if (auto best = search_cuts(problem, *cuts, kMostCuts)) {
      best->lower_bound = best->time;
      return std::move(*best);
    }
  auto best = search_cuts(problem, cuts_of_some_orders(problem), kMostCuts);
  MW_CHECK(best.has_value());
  return std::move(*best);
}

}  // namespace meshwright
