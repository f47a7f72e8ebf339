#include "core/timeline/timeline_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

constexpr const char* kStepStarts = "step starts";

/// Empty unless the text is a non-decreasing list of numbers.
std::vector<Ticks> parse_starts(const std::string& text) {
  std::vector<Ticks> starts;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (at < end) {
    std::int64_t value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc() || value < 0) return {};
    if (!starts.empty() && Ticks(value) < starts.back()) return {};
    starts.emplace_back(value);
    at = next == end ? next : next + 1;
  }
  return starts;
}

std::string text_of(const std::vector<Ticks>& starts) {
  std::string text;
  for (const Ticks start : starts)
    text += fmt::format("{}{}", text.empty() ? "" : " ", start.value);
  return text;
}

/// For each span, the number of earlier spans with the same name on its track.
std::vector<std::size_t> step_numbers(const Timeline& timeline) {
  std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> seen;
  std::vector<std::size_t> numbers;
  numbers.reserve(timeline.spans.size());
  for (const TimelineSpan& span : timeline.spans)
    numbers.push_back(seen[{span.track, span.name}]++);
  return numbers;
}

/// The start of each step: as given in the file, but not after its first span.
std::vector<Ticks> step_starts(const Timeline& timeline, const std::vector<std::size_t>& numbers,
                               std::size_t count) {
  std::vector<Ticks> first(count, Ticks::max());
  for (std::size_t i = 0; i < numbers.size(); ++i)
    first[numbers[i]] = std::min(first[numbers[i]], timeline.spans[i].start);
  const std::vector<Ticks> starts = recorded_step_starts(timeline);
  if (starts.size() != count) return first;
  for (std::size_t s = 0; s < count; ++s) first[s] = std::min(first[s], starts[s]);
  return first;
}

}  // namespace

std::vector<Timeline> steps_of(const Timeline& timeline) {
  const std::vector<std::size_t> numbers = step_numbers(timeline);
  const std::size_t count =
      numbers.empty() ? 1 : *std::max_element(numbers.begin(), numbers.end()) + 1;
  Timeline blank = timeline;
  blank.spans.clear();
  blank.flows.clear();
  blank.memory.clear();
  blank.provenance.erase(kStepStarts);
  std::vector<Timeline> steps(count, blank);
  const std::vector<Ticks> starts = step_starts(timeline, numbers, count);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    TimelineSpan span = timeline.spans[i];
    span.start -= starts[numbers[i]];
    span.end -= starts[numbers[i]];
    steps[numbers[i]].spans.push_back(span);
  }
  for (MemorySample sample : timeline.memory) {
    std::size_t step = 0;
    while (step + 1 < count && starts[step + 1] <= sample.time) ++step;
    sample.time = std::max(Ticks(), sample.time - starts[step]);
    steps[step].memory.push_back(sample);
  }
  return steps;
}

std::vector<Ticks> recorded_step_starts(const Timeline& timeline) {
  const auto recorded = timeline.provenance.find(kStepStarts);
  return recorded == timeline.provenance.end() ? std::vector<Ticks>()
                                               : parse_starts(recorded->second);
}

Ticks step_time(const Timeline& step) {
  Ticks last;
  for (const TimelineSpan& span : step.spans) last = std::max(last, span.end);
  return last;
}

namespace {

/// Appends the entries of all steps to `joined`, sorted by `key`; `move(step, index, entry)`
/// returns the entry shifted to the start of its step.
template <class Entry, class Key, class Move>
void join(std::span<const Timeline> steps, std::vector<Entry> Timeline::*entries, Key key,
          Move move, std::vector<Entry>& joined) {
  std::vector<std::size_t> next(steps.size(), 0);
  const auto has_next = [&](std::size_t s) { return next[s] < (steps[s].*entries).size(); };
  const auto next_key = [&](std::size_t s) { return key((steps[s].*entries)[next[s]]); };
  while (true) {
    std::optional<std::int32_t> least;
    for (std::size_t s = 0; s < steps.size(); ++s)
      if (has_next(s) && (!least || next_key(s) < *least)) least = next_key(s);
    if (!least) return;
    for (std::size_t s = 0; s < steps.size(); ++s)
      for (; has_next(s) && next_key(s) == *least; ++next[s])
        joined.push_back(move(s, next[s], (steps[s].*entries)[next[s]]));
  }
}

}  // namespace

Timeline join_steps(std::span<const Timeline> steps) {
  MW_CHECK(!steps.empty());
  std::vector<Ticks> starts{Ticks()};
  for (const Timeline& step : steps) {
    MW_CHECK(step.tracks == steps.front().tracks);
    MW_CHECK(step.names == steps.front().names);
    starts.push_back(starts.back() + step_time(step));
  }
  starts.pop_back();

  Timeline joined = steps.front();
  joined.spans.clear();
  joined.memory.clear();
  joined.flows.clear();
  std::vector<std::vector<std::int32_t>> place(steps.size());
  for (std::size_t s = 0; s < steps.size(); ++s) place[s].resize(steps[s].spans.size());
  join(
      steps, &Timeline::spans, [](const TimelineSpan& span) { return span.track; },
      [&](std::size_t s, std::size_t i, TimelineSpan span) {
        place[s][i] = static_cast<std::int32_t>(joined.spans.size());
        span.start += starts[s];
        span.end += starts[s];
        return span;
      },
      joined.spans);
  join(
      steps, &Timeline::memory, [](const MemorySample& sample) { return sample.rank; },
      [&](std::size_t s, std::size_t, MemorySample sample) {
        sample.time += starts[s];
        return sample;
      },
      joined.memory);
  for (std::size_t s = 0; s < steps.size(); ++s)
    for (const TimelineFlow& flow : steps[s].flows)
      joined.flows.push_back({place[s][static_cast<std::size_t>(flow.from)],
                              place[s][static_cast<std::size_t>(flow.to)]});
  joined.provenance[kStepStarts] = text_of(starts);
  return joined;
}

}  // namespace meshwright
