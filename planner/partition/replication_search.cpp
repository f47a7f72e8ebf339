#include "planner/partition/replication_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

namespace meshwright {
namespace {

using Index = std::int32_t;

/// Of all chains that files may have, on all degrees.
constexpr std::size_t kMostStages =
    kMostReplicationNodes * (kMostReplicationNodes + 1) / 2 * kMostTensorDegrees;
constexpr double kTolerance = 1e-12;  ///< of times
constexpr double kNever = std::numeric_limits<double>::infinity();

NodeCost cost_of(const TensorParallelNode& node) {
  NodeCost cost{.parameters = number(node.parameters), .is_possible = true};
  for (std::size_t v = 1; v < node.variants.size(); ++v)
    if (node.variants[v].time < node.variants[to_index(cost.fastest)].time)
      cost.fastest = static_cast<std::int32_t>(v);
  const NodeVariant& fastest = node.variants[to_index(cost.fastest)];
  cost.time = fastest.time.value;
  cost.memory_per_inflight = number(fastest.memory_per_inflight);
  cost.memory = number(fastest.memory);
  if (node.variants.size() > 1) {
    const NodeVariant& other = node.variants[to_index(1 - cost.fastest)];
    cost.other_time = other.time.value - cost.time;
    cost.other_memory_per_inflight = number(other.memory_per_inflight) - cost.memory_per_inflight;
    cost.other_memory = number(other.memory) - cost.memory;
  }
  return cost;
}

}  // namespace

ReplicationSearch::ReplicationSearch(const ReplicationProblem& problem, const DownSets& sets)
    : problem_(problem), sets_(sets) {
  for (const ReplicationNode& node : problem.nodes)
    for (const TensorParallelNode& degree : node.degrees) degrees_.push_back(degree.degree);
  std::sort(degrees_.begin(), degrees_.end());
  degrees_.erase(std::unique(degrees_.begin(), degrees_.end()), degrees_.end());
  for (const int degree : degrees_) {
    costs_.emplace_back(problem.nodes.size());
    of_node_.emplace_back(problem.nodes.size(), 0);
    for (std::size_t v = 0; v < problem.nodes.size(); ++v)
      for (std::size_t i = 0; i < problem.nodes[v].degrees.size(); ++i)
        if (problem.nodes[v].degrees[i].degree == degree) {
          costs_.back()[v] = cost_of(problem.nodes[v].degrees[i]);
          of_node_.back()[v] = i;
        }
  }
  for (int d = 1; d <= std::min(problem.microbatches, problem.devices); ++d)
    if (problem.microbatches % d == 0) data_degrees_.push_back(d);
}

double ReplicationSearch::crossing_bytes(std::size_t degree) const {
  double bytes = 0;
  for (const auto& [edge, from_stage] : crossing_) {
    const Bytes sync = from_stage ? edge->source_sync[of_node_[degree][to_index(edge->source)]]
                                  : edge->target_sync[of_node_[degree][to_index(edge->target)]];
    bytes += number(edge->transfer) + number(sync);
  }
  return bytes;
}

void ReplicationSearch::add_stages(Index begin, Index end) {
  const auto is_inside = [&](Index node) {
    return sets_.contains(end, node) && !sets_.contains(begin, node);
  };
  inside_.clear();
  for (std::size_t v = 0; v < problem_.nodes.size(); ++v)
    if (is_inside(static_cast<Index>(v))) inside_.push_back(v);
  crossing_.clear();
  for (const ReplicationEdge& edge : problem_.edges) {
    const bool from_stage = is_inside(edge.source);
    if (from_stage != is_inside(edge.target)) crossing_.push_back({&edge, from_stage});
  }
  for (std::size_t degree = 0; degree < degrees_.size(); ++degree) {
    StageCost stage{.begin = begin, .end = end, .degree = static_cast<int>(degree)};
    double parameters = 0;
    bool is_possible = true;
    for (const std::size_t v : inside_) {
      const NodeCost& cost = costs_[degree][v];
      is_possible = is_possible && cost.is_possible;
      stage.divided += cost.time;
      stage.memory_per_inflight += cost.memory_per_inflight;
      stage.memory += cost.memory;
      parameters += cost.parameters;
    }
    if (!is_possible) continue;
    const double bandwidth = problem_.bandwidth.value;
    stage.divided += 2 * crossing_bytes(degree) / bandwidth;
    stage.reduced = 4 * parameters / (problem_.microbatches * bandwidth);
    stages_.push_back(stage);
  }
}

bool ReplicationSearch::list_stages() {
  const std::size_t count = sets_.size();
  std::vector<Index> reached, seen(count, -1);
  for (std::size_t begin = 0; begin < count; ++begin) {
    first_stage_.push_back(stages_.size());
    const auto mark = static_cast<Index>(begin);
    reached.assign(1, mark);
    for (std::size_t i = 0; i < reached.size(); ++i)
      for (const DownSetStep& step : sets_.steps(reached[i])) {
        if (seen[to_index(step.next)] == mark) continue;
        seen[to_index(step.next)] = mark;
        reached.push_back(step.next);
        add_stages(mark, step.next);
        if (stages_.size() > kMostStages) return false;
      }
  }
  first_stage_.push_back(stages_.size());
  add_work();
  return true;
}

void ReplicationSearch::add_work() {
  std::vector<double> least(problem_.nodes.size(), kNever);
  for (std::size_t degree = 0; degree < degrees_.size(); ++degree)
    for (std::size_t v = 0; v < least.size(); ++v)
      if (costs_[degree][v].is_possible)
        least[v] = std::min(least[v], costs_[degree][v].time * degrees_[degree]);
  for (std::size_t set = 0; set < sets_.size(); ++set) {
    work_before_.push_back(0);
    for (std::size_t v = 0; v < least.size(); ++v)
      if (sets_.contains(static_cast<Index>(set), static_cast<Index>(v)))
        work_before_.back() += least[v];
  }
}

VariantChoice ReplicationSearch::choose_variants(const StageCost& stage, int inflight) const {
  VariantChoice choice;
  double excess =
      stage.memory_per_inflight * inflight + stage.memory - number(problem_.device_memory);
  if (excess <= 0) return choice;
  struct Change {
    double added_time_per_byte;
    Index node;
    double added_time, saved;
  };
  std::vector<Change> changes;
  for (std::size_t v = 0; v < problem_.nodes.size(); ++v) {
    const auto node = static_cast<Index>(v);
    if (!sets_.contains(stage.end, node) || sets_.contains(stage.begin, node)) continue;
    const NodeCost& cost = costs_[to_index(stage.degree)][v];
    const double saved = -(cost.other_memory_per_inflight * inflight + cost.other_memory);
    if (saved > 0) changes.push_back({cost.other_time / saved, node, cost.other_time, saved});
  }
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return std::tie(a.added_time_per_byte, a.node) < std::tie(b.added_time_per_byte, b.node);
  });
  for (const Change& change : changes) {
    choice.others.push_back(change.node);
    choice.added_time += change.added_time;
    excess -= change.saved;
    if (excess <= 0) return choice;
  }
  return {.added_time = kNever, .others = {}};
}

double ReplicationSearch::added_time(std::size_t stage, int inflight) {
  const StageCost& cost = stages_[stage];
  if (cost.memory_per_inflight * inflight + cost.memory <= number(problem_.device_memory)) return 0;
  const std::uint64_t key =
      (static_cast<std::uint64_t>(stage) << 32) | static_cast<std::uint32_t>(inflight);
  const auto [it, is_new] = added_times_.emplace(key, 0);
  if (is_new) it->second = choose_variants(cost, inflight).added_time;
  return it->second;
}

/// Keeps a label unless one with no more devices and no larger sum of data degrees is there.
void ReplicationSearch::keep(std::vector<Label>& front, const Label& label) const {
  for (const Label& other : front)
    if (other.devices <= label.devices && other.sum_of_data <= label.sum_of_data) return;
  std::erase_if(front, [&](const Label& other) {
    return label.devices <= other.devices && label.sum_of_data <= other.sum_of_data;
  });
  front.push_back(label);
}

void ReplicationSearch::extend(std::size_t stage, double threshold) {
  const StageCost& cost = stages_[stage];
  const int tensor = degrees_[to_index(cost.degree)];
  double least = 1;
  if (cost.divided > threshold) {
    if (cost.reduced >= threshold) return;
    constexpr double kRounding = 1 - 1e-12;
    least = std::ceil((cost.divided - cost.reduced) / (threshold - cost.reduced) * kRounding);
  }
  const auto first = std::lower_bound(data_degrees_.begin(), data_degrees_.end(), least);
  if (first == data_degrees_.end()) return;
  const int most_data = std::min(problem_.microbatches, problem_.devices);
  const int needed_before = static_cast<int>(
      std::min(1e9, std::ceil(work_before_[to_index(cost.begin)] / threshold - 1e-9)));
  const std::vector<Label>& front = fronts_[to_index(cost.end)];
  for (std::size_t next = 0; next < front.size(); ++next)
    for (auto d = first; d != data_degrees_.end(); ++d) {
      const int sum = front[next].sum_of_data + *d;
      const std::int64_t devices = front[next].devices + std::int64_t{*d} * tensor;
      if (sum > most_data || devices + needed_before > problem_.devices) break;
      const double time =
          cost.time(*d) + added_time(stage, static_cast<int>(divide_up(sum, *d))) / *d;
      if (time > threshold) continue;
      keep(fronts_[to_index(cost.begin)], {.sum_of_data = sum,
                                           .devices = static_cast<int>(devices),
                                           .time = std::max(time, front[next].time),
                                           .stage = static_cast<Index>(stage),
                                           .data = *d,
                                           .next = next});
      break;  // larger degrees take more devices
    }
}

/// At least the time of any stage with any variants.
double ReplicationSearch::longest_time() const {
  double longest = 0;
  for (const StageCost& stage : stages_)
    longest = std::max(longest, std::max(stage.divided, stage.reduced));
  for (const auto& costs : costs_)
    for (const NodeCost& cost : costs) longest += std::max(0.0, cost.other_time);
  return longest;
}

/// The time of the slowest stage of a partition, at most `threshold`; infinite if there is none.
double ReplicationSearch::find(double threshold) {
  fronts_.assign(sets_.size(), {});
  fronts_.back().push_back({});
  for (std::size_t set = sets_.size() - 1; set-- > 0;)
    for (std::size_t stage = first_stage_[set]; stage < first_stage_[set + 1]; ++stage)
      extend(stage, threshold);
  const auto best =
      std::min_element(fronts_[0].begin(), fronts_[0].end(),
                       [](const Label& a, const Label& b) { return a.time < b.time; });
  if (best == fronts_[0].end()) return kNever;
  found_.clear();
  for (Label label = *best; label.stage >= 0;
       label = fronts_[to_index(stages_[to_index(label.stage)].end)][label.next])
    found_.push_back(label);
  return best->time;
}

ReplicationPartition ReplicationSearch::result() const {
  ReplicationPartition partition;
  for (const Label& label : found_) {
    const StageCost& cost = stages_[to_index(label.stage)];
    ReplicatedStage stage{.nodes = {},
                          .variant = {},
                          .data = label.data,
                          .tensor = degrees_[to_index(cost.degree)],
                          .time = {},
                          .memory = {}};
    const VariantChoice choice =
        choose_variants(cost, static_cast<int>(divide_up(label.sum_of_data, label.data)));
    for (std::size_t v = 0; v < problem_.nodes.size(); ++v) {
      const auto node = static_cast<Index>(v);
      if (!sets_.contains(cost.end, node) || sets_.contains(cost.begin, node)) continue;
      const std::int32_t fastest = costs_[to_index(cost.degree)][v].fastest;
      const bool is_other =
          std::find(choice.others.begin(), choice.others.end(), node) != choice.others.end();
      stage.nodes.push_back(node);
      stage.variant.push_back(is_other ? 1 - fastest : fastest);
    }
    partition.devices += stage.data * stage.tensor;
    partition.stages.push_back(std::move(stage));
  }
  price_stages(problem_, partition.stages);
  for (const ReplicatedStage& stage : partition.stages)
    partition.time = std::max(partition.time, stage.time);
  return partition;
}

Seconds ReplicationSearch::least_time() const {
  return Seconds(work_before_.back() / problem_.devices * (1 - kTolerance));
}

std::optional<ReplicationPartition> ReplicationSearch::run() {
  constexpr double kFirstStep = 0.05, kStepGrowth = 1.5;
  constexpr double kFirstTime = 1e-9;  // seconds, if no node takes time
  double lower = least_time().value, upper = kNever;
  double step = kFirstStep;
  const double slowest = longest_time();
  std::optional<ReplicationPartition> best;
  while (!best || upper - lower > kTolerance * upper) {
    if (!best && lower >= slowest) return std::nullopt;
    const double threshold =
        best ? lower + (upper - lower) / 2 : std::min(slowest, lower * (1 + step) + kFirstTime);
    const double time = find(threshold);
    if (time <= threshold) {
      best = result();
      upper = time;
    } else {
      lower = threshold;
      step *= kStepGrowth;
    }
  }
  if (best) {
    best->lower_bound = std::min(Seconds(lower), best->time);
    best->down_sets = static_cast<std::int64_t>(sets_.size());
  }
  return best;
}

}  // namespace meshwright
