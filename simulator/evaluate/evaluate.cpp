/// Breaks the step of every rank down into parts that add up to it exactly.
///
/// A step runs from the first start to the last end over all ranks (for a window of several steps
/// see step_bounds.hpp). On the compute stream of a rank it consists of tasks, broken down by their
/// prices, and of gaps. A gap is traced back from the task that ends it: while that task waited for
/// a message or collective in flight, the gap is exposed communication of that axis; the rest is
/// bubble. Bubble fractions are defined in core/timeline/evaluation.hpp.
#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/check.hpp"
#include "simulator/engine/simulate.hpp"
#include "simulator/evaluate/evaluate.hpp"
#include "simulator/evaluate/idle_parts.hpp"

namespace meshwright {
namespace {

constexpr std::int32_t kNoTask = -1;

template <class Enum>
std::size_t index_of(Enum value) {
  return static_cast<std::size_t>(value);
}

/// Forward and backward passes of one rank.
struct PipelinedPart {
  Ticks start = Ticks::max();  ///< of the first pass
  Ticks end;                   ///< of the last one
  Ticks work;                  ///< sum of all passes
};

/// State of the walk over one rank.
struct RankWalk {
  PipelinedPart passes;
  Ticks compute_end;                       ///< of the last compute task so far
  Ticks idle_between;                      ///< bubble between its first and last pass
  std::int32_t last_collective = kNoTask;  ///< the one that ends last
};

class StepSplitter {
 public:
  StepSplitter(const TaskGraph& graph, std::span<const WorkPrice> prices,
               const SimulatedTimes& times, const std::optional<StepInWindow>& step)
      : graph_(graph),
        prices_(prices),
        times_(times),
        in_window_(step.has_value()),
        bounds_(step_bounds(graph, times, step)),
        walks_(graph.ranks.size()),
        breakdowns_(graph.ranks.size()) {
    survey();
  }

  Ticks step_time() const { return bounds_.time; }
  bool in_window() const { return in_window_; }
  const std::vector<RankWalk>& walks() const { return walks_; }

  /// For tasks on compute streams: true if the task is inside the step.
  bool counts(std::size_t i) const {
    const auto rank = static_cast<std::size_t>(graph_.tasks[i].rank);
    return bounds_.from[rank] <= times_.start[i] && times_.end[i] <= bounds_.to[rank];
  }

  std::vector<RankBreakdown> split() {
    for (std::size_t i = 0; i < graph_.tasks.size(); ++i)
      if (graph_.tasks[i].stream == Stream::kCompute && counts(i)) account(i);
    const Ticks busiest = busiest_work();
    for (std::size_t r = 0; r < walks_.size(); ++r) {
      close(r, busiest);
      MW_CHECK(total(breakdowns_[r]) == bounds_.time);
    }
    return std::move(breakdowns_);
  }

  Ticks busiest_work() const {
    Ticks busiest;
    for (const RankWalk& walk : walks_) busiest = std::max(busiest, walk.passes.work);
    return busiest;
  }

 private:
  /// First and last pass of every rank, and predecessors on the streams.
  void survey() {
    std::vector<std::int32_t> last_on_stream(graph_.ranks.size() * kStreamCount, kNoTask);
    previous_.resize(graph_.tasks.size());
    for (std::size_t i = 0; i < graph_.tasks.size(); ++i) {
      const Task& task = graph_.tasks[i];
      const auto rank = static_cast<std::size_t>(task.rank);
      std::int32_t& last = last_on_stream[rank * kStreamCount + index_of(task.stream)];
      previous_[i] = last;
      last = static_cast<std::int32_t>(i);
      RankWalk& walk = walks_[rank];
      if (is_of_pipeline(task) && counts(i)) {
        walk.passes.start = std::min(walk.passes.start, times_.start[i]);
        walk.passes.end = std::max(walk.passes.end, times_.end[i]);
        walk.passes.work += times_.end[i] - times_.start[i];
      } else if (task.kind == TaskKind::kCollective) {
        std::int32_t& latest = walk.last_collective;
        if (latest == kNoTask || times_.end[static_cast<std::size_t>(latest)] < times_.end[i])
          latest = static_cast<std::int32_t>(i);
      }
    }
    for (std::size_t r = 0; r < walks_.size(); ++r) {
      walks_[r].compute_end = bounds_.from[r];
      if (in_window_) walks_[r].passes.start = bounds_.from[r];
    }
  }

  /// Without a flush, weight updates run between passes and count as work of the pipeline.
  bool is_of_pipeline(const Task& task) const {
    return is_pass(task.kind) || (in_window_ && task.kind == TaskKind::kOptimizer);
  }

  /// The gap before a compute task, and the task itself.
  void account(std::size_t i) {
    const Task& task = graph_.tasks[i];
    const auto rank = static_cast<std::size_t>(task.rank);
    RankWalk& walk = walks_[rank];
    RankBreakdown& parts = breakdowns_[rank];
    if (const Ticks from = walk.compute_end, to = times_.start[i]; from < to) {
      const Ticks bubble =
          to - from -
          expose(from, to, binding_prerequisite(graph_, times_, previous_, TaskId(i)), parts);
      if (to <= walk.passes.start) {
        parts.bubble[index_of(BubbleCause::kWarmUp)] += bubble;
      } else if (from >= walk.passes.end) {
        parts.bubble[index_of(BubbleCause::kDrain)] += bubble;
      } else {
        walk.idle_between += bubble;
      }
    }
    add_parts(task, times_.end[i] - times_.start[i], parts);
    walk.compute_end = times_.end[i];
  }

  void add_parts(const Task& task, Ticks duration, RankBreakdown& parts) const {
    const WorkPrice& price = prices_[task.work.index()];
    if (task.kind == TaskKind::kCollective) {
      parts.exposed_communication[index_of(axis_of(graph_, task))] += duration;
      return;
    }
    parts.launch += duration - price.duration;
    for (std::size_t a = 0; a < kAxisCount; ++a)
      parts.exposed_communication[a] += price.communication[a];
    if (task.kind == TaskKind::kOptimizer) {
      for (const Ticks part : price.kernels) parts.optimizer += part;
      parts.optimizer += price.recompute;
    } else {
      for (std::size_t k = 0; k < kKernelKindCount; ++k) parts.compute[k] += price.kernels[k];
      parts.recompute += price.recompute;
    }
  }

  /// After the last compute task: the rank's own collectives are exposed communication, the rest
  /// is drain.
  void close(std::size_t rank, Ticks busiest) {
    RankWalk& walk = walks_[rank];
    RankBreakdown& parts = breakdowns_[rank];
    if (in_window_) {  // a rank with a shorter step than the longest waits for other ranks
      walk.idle_between += bounds_.time - (walk.compute_end - bounds_.from[rank]);
      walk.passes.end = walk.passes.start + bounds_.time;
    } else {
      const Ticks end = bounds_.to[rank];
      const Ticks exposed = expose(walk.compute_end, end, walk.last_collective, parts);
      parts.bubble[index_of(BubbleCause::kDrain)] += end - walk.compute_end - exposed;
    }
    const Ticks imbalance = std::min(walk.idle_between, busiest - walk.passes.work);
    parts.bubble[index_of(BubbleCause::kImbalance)] += imbalance;
    parts.bubble[index_of(BubbleCause::kDependency)] += walk.idle_between - imbalance;
  }

  /// Adds the communication inside the idle time [from, to) to its axis and returns its sum.
  Ticks expose(Ticks from, Ticks to, std::int32_t latest, RankBreakdown& parts) const {
    Ticks sum;
    each_exposed_part(graph_, times_, previous_, from, to, latest,
                      [&](const Task& task, Ticks begin, Ticks end) {
                        parts.exposed_communication[index_of(axis_of(graph_, task))] += end - begin;
                        sum += end - begin;
                      });
    return sum;
  }

  const TaskGraph& graph_;
  std::span<const WorkPrice> prices_;
  const SimulatedTimes& times_;
  bool in_window_;
  StepBounds bounds_;
  std::vector<std::int32_t> previous_;  ///< by task: predecessor on its stream
  std::vector<RankWalk> walks_;
  std::vector<RankBreakdown> breakdowns_;
};

/// The parts of every price of a compute task add up to its duration.
void check_prices(const TaskGraph& graph, std::span<const WorkPrice> prices) {
  MW_CHECK(prices.size() == graph.works.size());
  for (std::size_t w = 0; w < prices.size(); ++w) {
    if (!is_compute(graph.works[w].kind)) continue;
    const WorkPrice& p = prices[w];
    const Ticks kernels = std::accumulate(p.kernels.begin(), p.kernels.end(), p.recompute);
    MW_CHECK(p.duration ==
             std::accumulate(p.communication.begin(), p.communication.end(), kernels));
  }
}

bool has_passes(const RankWalk& walk) { return walk.passes.start < walk.passes.end; }

/// bubble_r(x) of core/timeline/evaluation.hpp; a rank with passes.
double bubble_fraction(const RankWalk& walk, Ticks x) {
  const Ticks span = walk.passes.end - walk.passes.start;
  return ratio(x - span + walk.idle_between, x);
}

/// Mean and minimum over the ranks with passes.
void set_bubbles(const TaskGraph& graph, std::span<const RankWalk> walks, Evaluation& result) {
  double ranks = 0;
  result.busiest_rank_bubble = 1;
  for (std::size_t r = 0; r < walks.size(); ++r) {
    if (!has_passes(walks[r])) continue;
    const double multiplicity = graph.ranks[r].multiplicity;
    const double of_period = bubble_fraction(walks[r], result.period);
    result.bubble_of_period += multiplicity * of_period;
    result.bubble_of_makespan += multiplicity * bubble_fraction(walks[r], result.pipeline_makespan);
    result.busiest_rank_bubble = std::min(result.busiest_rank_bubble, of_period);
    ranks += multiplicity;
  }
  result.bubble_of_period /= ranks;
  result.bubble_of_makespan /= ranks;
}

void set_pipeline_figures(const TaskGraph& graph, const StepSplitter& splitter,
                          Evaluation& result) {
  Ticks first = Ticks::max(), last;
  for (const RankWalk& walk : splitter.walks()) {
    if (!has_passes(walk)) continue;
    first = std::min(first, walk.passes.start);
    last = std::max(last, walk.passes.end);
    result.period = std::max(result.period, walk.passes.end - walk.passes.start);
  }
  if (last <= first) return;
  // In a window every rank has its own bounds; the step is the period.
  result.pipeline_makespan = splitter.in_window() ? result.period : last - first;
  set_bubbles(graph, splitter.walks(), result);
}

/// FLOPs of the whole job. Tasks are counted by work first, so that the floating-point sum is short
/// and does not depend on the order of tasks.
Flops hardware_flops(const TaskGraph& graph, std::span<const WorkPrice> prices,
                     const StepSplitter& splitter) {
  std::vector<std::int64_t> runs(graph.works.size());
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task& task = graph.tasks[i];
    if (splitter.in_window() && !splitter.counts(i)) continue;
    runs[task.work.index()] += graph.ranks[static_cast<std::size_t>(task.rank)].multiplicity;
  }
  Flops sum;
  for (std::size_t w = 0; w < runs.size(); ++w)
    sum += prices[w].flops * static_cast<double>(runs[w]);
  return sum;
}

void set_rates(const TaskGraph& graph, std::span<const WorkPrice> prices, const JobFacts& job,
               const StepSplitter& splitter, Evaluation& result) {
  MW_CHECK(job.job_ranks > 0);
  MW_CHECK(result.step_time > Ticks());
  const Seconds step = to_seconds(result.step_time);
  const auto ranks = static_cast<double>(job.job_ranks);
  result.tokens_per_second_per_gpu = static_cast<double>(job.tokens_per_step) / step.value / ranks;
  result.model_flops_per_gpu = job.model_flops_per_step / step / ranks;
  result.hardware_flops_per_gpu = hardware_flops(graph, prices, splitter) / step / ranks;
  if (job.device_peak > FlopsPerSecond()) {
    result.mfu = ratio(result.model_flops_per_gpu, job.device_peak);
    result.hfu = ratio(result.hardware_flops_per_gpu, job.device_peak);
  }
}

/// The allocator keeps at most what the rest leaves free on the device.
void add_allocator_slack(const TaskGraph& graph, Evaluation& result) {
  for (std::size_t r = 0; r < graph.ranks.size(); ++r) {
    MemoryAmounts& peak = result.peak_memory[r];
    const double wish =
        graph.ranks[r].allocator_slack * static_cast<double>(allocated_bytes(peak).value);
    const Bytes free = std::max(Bytes(0), memory_capacity_of(result, r) - total(peak));
    const Bytes slack = std::min(Bytes(static_cast<std::int64_t>(wish)), free);
    peak[MemoryClass::kReserved] += slack;
    result.allocator_slack.push_back(slack);
  }
}

}  // namespace

Evaluation evaluate(const TaskGraph& graph, std::span<const WorkPrice> prices,
                    const SimulatedTimes& times, const JobFacts& job) {
  MW_CHECK(!graph.tasks.empty());
  MW_CHECK(times.start.size() == graph.tasks.size());
  MW_CHECK(times.end.size() == graph.tasks.size());
  check_prices(graph, prices);

  Evaluation result;
  StepSplitter splitter(graph, prices, times, job.step);
  result.step_time = splitter.step_time();
  result.ranks = splitter.split();
  set_pipeline_figures(graph, splitter, result);
  result.peak_memory = peak_memory_by_rank(graph);
  result.memory_capacity = job.memory_capacity;
  if (!job.capacity_of_position.empty())
    for (const RankInfo& rank : graph.ranks)
      result.memory_capacities.push_back(
          capacity_at(job, static_cast<std::size_t>(rank.coordinate.pipeline)));
  add_allocator_slack(graph, result);
  result.memory_capacity = memory_capacity_of(result, fullest_rank(result));
  for (const RankInfo& rank : graph.ranks) result.multiplicity.push_back(rank.multiplicity);
  result.job_ranks = job.job_ranks;
  set_rates(graph, prices, job, splitter, result);
  return result;
}

}  // namespace meshwright
