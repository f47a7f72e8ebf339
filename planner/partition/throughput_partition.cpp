#include "planner/partition/throughput_partition.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/base/check.hpp"
#include "core/base/indices.hpp"
#include "planner/partition/threshold_pass.hpp"

namespace meshwright {
namespace {

using Index = std::int32_t;

std::vector<PartitionStage> to_stages(const std::vector<LatticeStage>& found,
                                      const PartitionLattice& lattice,
                                      const PartitionProblem& problem) {
  std::vector<PartitionStage> stages;
  std::vector<std::size_t> stage_of_item(lattice.items->items.size());
  for (const LatticeStage& stage : found) {
    for (std::size_t item = 0; item < stage_of_item.size(); ++item)
      if (lattice.sets.contains(stage.end, static_cast<Index>(item)) &&
          !lattice.sets.contains(stage.begin, static_cast<Index>(item)))
        stage_of_item[item] = stages.size();
    stages.push_back({.on_host = stage.on_host, .nodes = {}, .load = {}, .memory = {}});
  }
  for (std::size_t v = 0; v < problem.nodes.size(); ++v)
    stages[stage_of_item[to_index(lattice.items->item_of_node[v])]].nodes.push_back(
        static_cast<Index>(v));
  price_stages(problem, stages);
  return stages;
}

Ticks largest_load(const std::vector<PartitionStage>& stages) {
  Ticks load;
  for (const PartitionStage& stage : stages) load = std::max(load, stage.load);
  return load;
}

/// More than the load of any partition.
std::int64_t beyond_all_loads(const PartitionLattice& lattice, const SignalMembers& signals) {
  std::int64_t load = lattice.of_set.back().time + 1;
  for (const PartitionItem& item : lattice.items->items) load += item.host_time;
  for (const std::int64_t time : signals.time) load += time;
  return load;
}

/// A lower bound: all work evenly on all devices, where a host counts as many accelerators as the
/// item that it computes best.
std::int64_t even_load(const PartitionItems& items, const PartitionProblem& problem) {
  double work = 0, rate_of_host = 0;
  for (const PartitionItem& item : items.items) {
    if (item.host_time == 0) continue;
    const auto time = static_cast<double>(item.accelerator_time);
    work += time;
    rate_of_host = std::max(rate_of_host, time / static_cast<double>(item.host_time));
  }
  constexpr double kRounding = 1 - 1e-9;
  const double devices = problem.accelerators + problem.hosts * rate_of_host;
  return devices > 0 ? static_cast<std::int64_t>(work * kRounding / devices) : 0;
}

/// The next threshold for an optimum in [lower, upper]. Passes with low thresholds are fast, so the
/// search comes from below in growing steps, then halves the interval, and tries just below the
/// best partition every other time once the interval is short.
class Thresholds {
 public:
  Thresholds(std::int64_t lower, std::int64_t upper) : lower_(lower), upper_(upper) {}
  bool is_closed() const { return lower_ >= upper_; }
  std::int64_t lower() const { return lower_; }
  std::int64_t next() {
    if (!has_found_) {
      const double up = static_cast<double>(std::max<std::int64_t>(lower_, 1)) * (1 + step_) + 1;
      return up < static_cast<double>(upper_) ? static_cast<std::int64_t>(up) : upper_;
    }
    const std::int64_t gap = upper_ - lower_;
    tries_upper_ = !tries_upper_ && static_cast<double>(gap) < kShort * static_cast<double>(upper_);
    return tries_upper_ ? upper_ : lower_ + (gap + 1) / 2;
  }
  void found(std::int64_t load) { upper_ = load, has_found_ = true; }
  void not_found(std::int64_t threshold) { lower_ = threshold, step_ *= kStepGrowth; }

 private:
  static constexpr double kFirstStep = 0.01, kStepGrowth = 1.4, kShort = 0.01;
  std::int64_t lower_, upper_;  ///< no partition is below lower; the best one has upper
  double step_ = kFirstStep;
  bool has_found_ = false, tries_upper_ = false;
};

/// Narrows the bounds of `best` as far as the budget of extensions allows; returns whether it was
/// enough.
bool search(const PartitionLattice& lattice, const SignalMembers& signals,
            const PartitionProblem& problem, const PartitionLimits& limits,
            ThroughputPartition& best) {
  best.down_sets += static_cast<std::int64_t>(lattice.sets.size());
  const std::int64_t upper =
      best.stages.empty() ? beyond_all_loads(lattice, signals) : best.load.value;
  Thresholds thresholds(best.lower_bound.value, upper);
  while (!thresholds.is_closed()) {
    const std::int64_t threshold = thresholds.next();
    const auto found =
        find_partition_below(threshold, lattice, signals, limits.extensions, best.extensions);
    if (!found) return false;
    if (found->empty()) {
      thresholds.not_found(threshold);
      continue;
    }
    best.stages = to_stages(*found, lattice, problem);
    best.load = largest_load(best.stages);
    MW_CHECK(best.load.value < threshold);
    thresholds.found(best.load.value);
  }
  best.lower_bound = Ticks(thresholds.lower());
  return true;
}

/// Only stages that are consecutive in one topological order: an upper bound.
void search_chain(const PartitionItems& items, const PartitionProblem& problem,
                  const PartitionLimits& limits, ThroughputPartition& best) {
  const std::int64_t lower = best.lower_bound.value;
  const PartitionItems chain = chain_of_blocks(items);
  const SignalMembers signals(chain);
  std::optional<DownSets> sets =
      enumerate_down_sets(chain.before, chain.after, chain.items.size() + 1);
  MW_CHECK(sets.has_value());
  search(make_lattice(chain, signals, std::move(*sets), problem), signals, problem, limits, best);
  best.lower_bound = Ticks(lower);
}

}  // namespace

void price_stages(const PartitionProblem& problem, std::vector<PartitionStage>& stages) {
  std::vector<std::size_t> stage_of(problem.nodes.size());
  for (std::size_t s = 0; s < stages.size(); ++s) {
    stages[s].load = Ticks{};
    stages[s].memory = Bytes{};
    for (const Index v : stages[s].nodes) {
      const PartitionNode& node = problem.nodes[to_index(v)];
      stage_of[to_index(v)] = s;
      stages[s].load += stages[s].on_host ? node.host_time : node.accelerator_time;
      stages[s].memory += node.memory;
    }
  }
  std::set<std::pair<Index, std::size_t>> paid;  // source, stage
  for (const PartitionEdge& edge : problem.edges) {
    const std::size_t from = stage_of[to_index(edge.source)], to = stage_of[to_index(edge.target)];
    if (from == to) continue;
    for (const std::size_t s : {from, to})
      if (!stages[s].on_host && paid.emplace(edge.source, s).second)
        stages[s].load += problem.nodes[to_index(edge.source)].transfer_time;
  }
}

std::optional<ThroughputPartition> partition_for_throughput(const PartitionProblem& problem,
                                                            const PartitionLimits& limits) {
  const PartitionItems items = make_partition_items(problem);
  ThroughputPartition best;
  best.lower_bound = Ticks(even_load(items, problem));
  bool is_complete = false;
  std::optional<DownSets> sets;
  if (items.items.size() <= limits.items)
    sets = enumerate_down_sets(items.before, items.after, limits.down_sets);
  if (sets) {
    const SignalMembers signals(items);
    is_complete = search(make_lattice(items, signals, std::move(*sets), problem), signals, problem,
                         limits, best);
  }
  if (!is_complete) search_chain(items, problem, limits, best);
  if (best.stages.empty()) return std::nullopt;
  return best;
}

}  // namespace meshwright
