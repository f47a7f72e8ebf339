#include "core/timeline/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "core/base/median.hpp"
#include "core/timeline/timeline_steps.hpp"

namespace meshwright {
namespace {

constexpr const char* kAnotherPlan = "simulate and run the same plan file";
constexpr const char* kInterruptLater = "let the run finish at least one step";

bool was_interrupted(const Timeline& timeline) {
  const auto steps = timeline.provenance.find("steps");
  return steps != timeline.provenance.end() && steps->second.starts_with("interrupted");
}

double size_of_error(Ticks predicted, Ticks measured) {
  return std::abs(relative_error(predicted, measured).value_or(0));
}

// ---- joining ----

/// A task in both timelines.
struct JoinedTask {
  std::string name;
  TimelineTrack track;
  TaskKind kind = TaskKind::kForward;
  std::int16_t stage = -1;
  Ticks predicted, measured;
};

using TaskKey = std::pair<std::int32_t, std::string>;  ///< rank, name

std::map<TaskKey, const TimelineSpan*> spans_by_name(const Timeline& timeline) {
  std::map<TaskKey, const TimelineSpan*> spans;
  for (const TimelineSpan& span : timeline.spans)
    spans[{timeline.tracks[static_cast<std::size_t>(span.track)].rank.value,
           std::string(timeline.names[static_cast<std::size_t>(span.name)])}] = &span;
  return spans;
}

std::set<std::int32_t> ranks_of(const Timeline& timeline) {
  std::set<std::int32_t> ranks;
  for (const TimelineSpan& span : timeline.spans)
    ranks.insert(timeline.tracks[static_cast<std::size_t>(span.track)].rank.value);
  return ranks;
}

/// The measured steps without the warm-up step.
std::vector<Timeline> counted_steps(const Timeline& measured) {
  std::vector<Timeline> steps = steps_of(measured);
  if (steps.size() > 1) steps.erase(steps.begin());
  return steps;
}

void refuse_other_plans(const std::map<TaskKey, const TimelineSpan*>& predicted,
                        const std::map<TaskKey, const TimelineSpan*>& measured,
                        const std::set<std::int32_t>& shared_ranks, const CompareInput& left,
                        const CompareInput& right) {
  std::size_t matched = 0, missing_here = 0, missing_there = 0;
  std::string example;
  for (const auto& [key, span] : predicted) {
    if (measured.contains(key)) {
      ++matched;
      continue;
    }
    if (missing_there++ == 0) example = fmt::format("{} is not in {}", key.second, right.where);
  }
  for (const auto& [key, span] : measured)
    if (shared_ranks.contains(key.first) && !predicted.contains(key) && missing_here++ == 0 &&
        example.empty())
      example = fmt::format("{} is not in {}", key.second, left.where);
  if (missing_here == 0 && missing_there == 0) return;
  if (missing_here == 0 && was_interrupted(right.timeline))
    throw InputError({right.where,
                      fmt::format("interrupted before the first step was complete: {} of {} tasks "
                                  "of {}",
                                  matched, matched + missing_there, left.where),
                      kInterruptLater});
  throw InputError(
      {right.where,
       fmt::format("not a measurement of the plan of {}: {} tasks in common, {} only in {}, "
                   "{} only here; {}",
                   left.where, matched, missing_there, left.where, missing_here, example),
       kAnotherPlan});
}

std::vector<JoinedTask> join(const Timeline& predicted, const std::vector<Timeline>& steps,
                             const CompareInput& left, const CompareInput& right) {
  const std::set<std::int32_t> ranks = ranks_of(predicted);
  const auto spans = spans_by_name(predicted);
  std::map<TaskKey, std::vector<Ticks>> times;
  for (const Timeline& step : steps) {
    const auto measured = spans_by_name(step);
    refuse_other_plans(spans, measured, ranks, left, right);
    for (const auto& [key, span] : measured)
      if (ranks.contains(key.first)) times[key].push_back(span->end - span->start);
  }
  std::vector<JoinedTask> tasks;
  tasks.reserve(spans.size());
  for (const auto& [key, span] : spans)
    tasks.push_back({.name = key.second,
                     .track = predicted.tracks[static_cast<std::size_t>(span->track)],
                     .kind = span->kind,
                     .stage = span->stage,
                     .predicted = span->end - span->start,
                     .measured = upper_median(times.at(key))});
  return tasks;
}

// ---- tables ----

/// Groups tasks by `key_of`, sorted by key; tasks without a key are skipped.
template <class KeyOf, class NameOf>
std::vector<ComparedTasks> grouped(const std::vector<JoinedTask>& tasks, KeyOf key_of,
                                   NameOf name_of_key) {
  std::map<int, ComparedTasks> groups;
  for (const JoinedTask& task : tasks) {
    const std::optional<int> key = key_of(task);
    if (!key) continue;
    ComparedTasks& group = groups[*key];
    ++group.tasks;
    group.predicted += task.predicted;
    group.measured += task.measured;
    group.mean_error += size_of_error(task.predicted, task.measured);
  }
  std::vector<ComparedTasks> list;
  for (auto& [key, group] : groups) {
    group.name = name_of_key(key);
    group.mean_error /= static_cast<double>(group.tasks);
    list.push_back(std::move(group));
  }
  return list;
}

bool computes(const JoinedTask& task) {
  return task.kind != TaskKind::kCollective && task.kind != TaskKind::kSend &&
         task.kind != TaskKind::kReceive;
}

std::vector<ComparedTask> worst_of(const std::vector<JoinedTask>& tasks) {
  std::vector<ComparedTask> list;
  list.reserve(tasks.size());
  for (const JoinedTask& task : tasks) list.push_back({task.name, task.predicted, task.measured});
  const auto difference = [](const ComparedTask& task) {
    return std::abs((task.measured - task.predicted).value);
  };
  std::stable_sort(list.begin(), list.end(), [&](const ComparedTask& a, const ComparedTask& b) {
    return difference(a) > difference(b);
  });
  list.resize(std::min(list.size(), kWorstTasks));
  return list;
}

std::map<std::int32_t, Bytes> peaks_of(const Timeline& timeline) {
  std::map<std::int32_t, Bytes> peaks;
  for (const MemorySample& sample : timeline.memory) {
    const Bytes held = total(sample.amounts) - sample.amounts[MemoryClass::kReserved];
    Bytes& peak = peaks[sample.rank];
    peak = std::max(peak, held);
  }
  return peaks;
}

std::vector<ComparedMemory> compare_memory(const Timeline& predicted, const Timeline& measured) {
  const std::map<std::int32_t, Bytes> here = peaks_of(predicted), there = peaks_of(measured);
  std::vector<ComparedMemory> memory;
  for (const auto& [rank, peak] : here)
    if (const auto found = there.find(rank); found != there.end())
      memory.push_back({RankId(rank), peak, found->second});
  return memory;
}

// ---- attribution ----

/// Breakdown of the step of one rank.
struct RankTime {
  Ticks compute, communication, waiting;
};

using Interval = std::pair<Ticks, Ticks>;

/// Sorted and without overlaps.
std::vector<Interval> merged(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end());
  std::vector<Interval> merged;
  for (const Interval& next : intervals) {
    if (!merged.empty() && next.first <= merged.back().second)
      merged.back().second = std::max(merged.back().second, next.second);
    else
      merged.push_back(next);
  }
  return merged;
}

/// The part of [from, to) that is covered by the intervals.
Ticks covered(const std::vector<Interval>& by, Ticks from, Ticks to) {
  if (to <= from) return {};
  Ticks sum;
  auto next = std::partition_point(
      by.begin(), by.end(), [&](const Interval& interval) { return interval.second <= from; });
  for (; next != by.end() && next->first < to; ++next)
    sum += std::min(next->second, to) - std::max(next->first, from);
  return sum;
}

RankTime time_of_rank(const Timeline& step, RankId rank, Ticks whole) {
  std::vector<Interval> busy, messages;
  for (const TimelineSpan& span : step.spans)
    if (step.tracks[static_cast<std::size_t>(span.track)].rank == rank)
      (is_compute(span.kind) ? busy : messages).emplace_back(span.start, span.end);
  messages = merged(std::move(messages));
  RankTime time;
  Ticks now;
  for (const auto& [start, end] : merged(std::move(busy))) {
    time.compute += end - start;
    time.communication += covered(messages, now, start);
    now = end;
  }
  time.communication += covered(messages, now, whole);
  time.waiting = whole - time.compute - time.communication;
  return time;
}

/// The rank in both timelines whose measured compute ends last.
RankId last_rank(const Timeline& measured, const std::set<std::int32_t>& shared) {
  RankId rank(*shared.begin());
  Ticks last(-1);
  for (const TimelineSpan& span : measured.spans) {
    const RankId of = measured.tracks[static_cast<std::size_t>(span.track)].rank;
    if (!shared.contains(of.value) || !is_compute(span.kind)) continue;
    if (span.end > last || (span.end == last && of < rank)) {
      last = span.end;
      rank = of;
    }
  }
  return rank;
}

StepAttribution attribute(const Timeline& predicted, const Timeline& measured, RankId rank) {
  const RankTime here = time_of_rank(predicted, rank, step_time(predicted));
  const RankTime there = time_of_rank(measured, rank, step_time(measured));
  return {.rank = rank,
          .compute = there.compute - here.compute,
          .communication = there.communication - here.communication,
          .waiting = there.waiting - here.waiting};
}

std::size_t median_step(const std::vector<Timeline>& steps) {
  std::vector<std::pair<Ticks, std::size_t>> by_time;
  for (std::size_t i = 0; i < steps.size(); ++i) by_time.emplace_back(step_time(steps[i]), i);
  return upper_median(by_time).second;
}

Ticks spread_of(const std::vector<Timeline>& steps) {
  std::vector<Ticks> times;
  times.reserve(steps.size());
  for (const Timeline& step : steps) times.push_back(step_time(step));
  std::sort(times.begin(), times.end());
  const auto at = [&](std::size_t quarter) { return times[(times.size() - 1) * quarter / 4]; };
  return at(3) - at(1);
}

void check_inputs(const CompareInput& predicted, const CompareInput& measured) {
  for (const CompareInput& input : {predicted, measured})
    if (input.timeline.spans.empty())
      throw InputError({input.where, "the timeline has no tasks",
                        was_interrupted(input.timeline) ? kInterruptLater
                                                        : "write it with simulate -o or run -o"});
  if (predicted.timeline.origin == TimelineOrigin::kMeasured &&
      measured.timeline.origin == TimelineOrigin::kPredicted)
    throw InputError({predicted.where,
                      "expected a predicted timeline first, got a measured and a predicted one",
                      "swap the two files"});
}

}  // namespace

std::optional<double> relative_error(Ticks predicted, Ticks measured) {
  if (measured.value <= 0) return std::nullopt;
  return ratio(predicted, measured) - 1;
}
std::optional<double> relative_error(Bytes predicted, Bytes measured) {
  if (measured.value <= 0) return std::nullopt;
  return ratio(predicted, measured) - 1;
}

Ticks total(const StepAttribution& a) { return a.compute + a.communication + a.waiting; }

std::optional<double> step_error(const ValidationReport& report) {
  return relative_error(report.predicted_step, report.measured_step);
}

std::optional<double> peak_memory_error(const ValidationReport& report) {
  std::optional<double> worst;
  for (const ComparedMemory& rank : report.memory)
    if (const auto error = relative_error(rank.predicted, rank.measured);
        error && (!worst || std::abs(*error) > *worst))
      worst = std::abs(*error);
  return worst;
}

ValidationReport compare(const CompareInput& predicted, const CompareInput& measured) {
  check_inputs(predicted, measured);
  const Timeline prediction = steps_of(predicted.timeline).front();
  const std::vector<Timeline> steps = counted_steps(measured.timeline);
  const std::vector<JoinedTask> tasks = join(prediction, steps, predicted, measured);
  const Timeline& middle = steps[median_step(steps)];
  const std::set<std::int32_t> ranks = ranks_of(prediction);

  ValidationReport report;
  report.predicted_step = step_time(prediction);
  report.measured_step = step_time(middle);
  report.measured_spread = spread_of(steps);
  report.counted_steps = static_cast<int>(steps.size());
  report.matched = static_cast<std::int64_t>(tasks.size());
  for (const std::int32_t rank : ranks_of(middle)) report.ranks_left_out += !ranks.contains(rank);
  report.by_kind = grouped(
      tasks, [](const JoinedTask& task) { return std::optional(static_cast<int>(task.kind)); },
      [](int kind) { return std::string(name_of(static_cast<TaskKind>(kind))); });
  report.by_stage = grouped(
      tasks,
      [](const JoinedTask& task) {
        return computes(task) && task.stage >= 0 ? std::optional<int>(task.stage) : std::nullopt;
      },
      [](int stage) { return fmt::format("stage {}", stage); });
  report.by_stream = grouped(
      tasks,
      [](const JoinedTask& task) {
        return computes(task) ? std::nullopt : std::optional(static_cast<int>(task.track.stream));
      },
      [](int stream) { return std::string(name_of(static_cast<Stream>(stream))); });
  report.worst = worst_of(tasks);
  report.memory = compare_memory(prediction, measured.timeline);
  report.attribution = attribute(prediction, middle, last_rank(middle, ranks));
  MW_CHECK(total(report.attribution) == report.measured_step - report.predicted_step);
  return report;
}

}  // namespace meshwright
