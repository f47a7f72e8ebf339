#include "tests/properties/time_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace meshwright {
namespace {

constexpr std::size_t kMostReported = 3;

class StartChecks {
 public:
  StartChecks(const TaskGraph& graph, std::span<const WorkPrice> prices, const TaskTimes& times,
              StartRule rule)
      : graph_(graph), prices_(prices), times_(times), rule_(rule) {}

  std::vector<std::string> run() {
    std::vector<Ticks> earliest(graph_.tasks.size());
    for (std::size_t i = 0; i < graph_.tasks.size(); ++i) earliest[i] = ready(i);
    for (const CollectiveMembers& members : graph_.collectives) {  // start together
      const auto begin = earliest.begin() + members.first, end = begin + members.count;
      std::fill(begin, end, *std::max_element(begin, end));
    }
    for (std::size_t i = 0; i < graph_.tasks.size() && found_.size() < kMostReported; ++i) {
      const Ticks start = times_.start[i];
      if (rule_ == StartRule::kAtOnce ? start != earliest[i] : start < earliest[i])
        report(i, fmt::format("can start at {}", earliest[i].value));
      check_duration(i);
    }
    return std::move(found_);
  }

 private:
  /// The end of the task before it on its stream and of everything that it waits for.
  Ticks ready(std::size_t i) {
    const Task& task = graph_.tasks[i];
    Ticks& free = free_[{task.rank, task.stream}];
    Ticks at = free;
    free = times_.end[i];
    for (const TaskId d : graph_.dependencies_of(TaskId(i))) at = std::max(at, end_of(d));
    if (task.kind == TaskKind::kReceive)
      at = std::max(at, times_.start[send_of(task)] + latency_of(task));
    return at;
  }

  void check_duration(std::size_t i) {
    const Task& task = graph_.tasks[i];
    const Ticks duration = times_.end[i] - times_.start[i];
    if (task.kind == TaskKind::kReceive) {
      if (times_.end[i] < times_.end[send_of(task)] + latency_of(task))
        report(i, "has not arrived");
      return;
    }
    const Ticks price = prices_[task.work.index()].duration;
    const bool may_take_longer = is_compute(task.kind) || rule_ == StartRule::kNotBefore;
    if (may_take_longer ? duration < price : duration != price)
      report(i, fmt::format("costs {}", price.value));
  }

  void report(std::size_t i, const std::string& what) {
    found_.push_back(fmt::format("{} runs from {} to {}, but {}", stable_name(graph_, TaskId(i)),
                                 times_.start[i].value, times_.end[i].value, what));
  }
  Ticks end_of(TaskId task) const { return times_.end[task.index()]; }
  static std::size_t send_of(const Task& receive) {
    return static_cast<std::size_t>(receive.partner);
  }
  Ticks latency_of(const Task& receive) const {
    return prices_[graph_.tasks[send_of(receive)].work.index()].latency;
  }

  const TaskGraph& graph_;
  std::span<const WorkPrice> prices_;
  const TaskTimes& times_;
  StartRule rule_;
  std::map<std::pair<std::int32_t, Stream>, Ticks> free_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> wrong_starts(const TaskGraph& graph, std::span<const WorkPrice> prices,
                                      const TaskTimes& times, StartRule rule) {
  return StartChecks(graph, prices, times, rule).run();
}

std::vector<BusyTime> busy_times(const TaskGraph& graph, std::span<const WorkPrice> prices,
                                 const TaskTimes& times) {
  std::vector<BusyTime> ranks(graph.ranks.size());
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task& task = graph.tasks[i];
    if (task.stream != Stream::kCompute) continue;
    BusyTime& rank = ranks[static_cast<std::size_t>(task.rank)];
    const Ticks duration = times.end[i] - times.start[i];
    rank.all += duration;
    if (task.kind == TaskKind::kCollective) rank.communication += duration;
    for (const Ticks part : prices[task.work.index()].communication) rank.communication += part;
  }
  return ranks;
}

std::vector<std::string> wrong_peaks(const TaskGraph& graph, const Evaluation& evaluation) {
  std::vector<std::string> found;
  const auto report = [&](std::size_t rank, Bytes expected) {
    found.push_back(fmt::format("rank {} has a peak of {} bytes with {} of slack, expected {}",
                                rank, total(evaluation.peak_memory[rank]).value,
                                evaluation.allocator_slack[rank].value, expected.value));
  };
  std::vector<MemoryAmounts> held;
  std::vector<Bytes> peaks;
  for (const RankInfo& rank : graph.ranks) {
    held.push_back(rank.resident);
    peaks.push_back(total(rank.resident));
  }
  for (const Task& task : graph.tasks) {
    if (task.stream != Stream::kCompute) continue;
    const auto rank = static_cast<std::size_t>(task.rank);
    const Work& work = graph.works[task.work.index()];
    held[rank] += work.acquired;
    peaks[rank] = std::max(peaks[rank], total(held[rank]) + total(work.transient));
    held[rank] -= work.released;
  }
  for (std::size_t r = 0; r < held.size(); ++r) {
    const Bytes reported = total(evaluation.peak_memory[r]) - evaluation.allocator_slack[r];
    if (reported != peaks[r]) report(r, peaks[r]);
    for (const Bytes part : evaluation.peak_memory[r].by_class)
      if (part < Bytes(0)) report(r, peaks[r]);
  }
  return found;
}

}  // namespace meshwright
