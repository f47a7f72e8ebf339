#include "gui/timeline/tracks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/base/check.hpp"
#include "core/timeline/timeline_steps.hpp"

namespace meshwright::gui {
namespace {

/// Looks up a slice in a sorted list of exceptions.
template <class Value>
const Value& exception_of(const std::vector<std::pair<std::size_t, Value>>& list,
                          std::size_t slice) {
  const auto at = std::lower_bound(list.begin(), list.end(), slice,
                                   [](const auto& e, std::size_t s) { return e.first < s; });
  MW_CHECK(at != list.end());
  MW_CHECK(at->first == slice);
  return at->second;
}

}  // namespace

Nanoseconds TimelineTracks::long_duration(std::size_t slice) const {
  return Nanoseconds(exception_of(long_durations, slice));
}

std::size_t TimelineTracks::far_label(std::size_t slice) const {
  return exception_of(far_labels, slice);
}

std::size_t TimelineTracks::row_of(std::size_t slice) const {
  const auto next = std::upper_bound(row_begin.begin(), row_begin.end(), slice);
  return static_cast<std::size_t>(next - row_begin.begin()) - 1;
}

std::size_t TimelineTracks::first_starting_from(std::size_t row, Nanoseconds time) const {
  const auto first = start_ns.begin() + static_cast<std::ptrdiff_t>(row_begin[row]);
  const auto last = start_ns.begin() + static_cast<std::ptrdiff_t>(row_begin[row + 1]);
  return static_cast<std::size_t>(std::lower_bound(first, last, time.value) - start_ns.begin());
}

std::size_t TimelineTracks::first_ending_after(std::size_t row, Nanoseconds time) const {
  // Slices do not overlap, so only the last one that starts before `time` can reach beyond it.
  const std::size_t next = first_starting_from(row, time);
  if (next > row_begin[row] && end_of(next - 1) > time) return next - 1;
  // Skip empty slices at `time` itself: they do not end after it.
  std::size_t slice = next;
  while (slice < row_begin[row + 1] && end_of(slice) <= time) ++slice;
  return slice;
}

std::size_t TimelineTracks::slice_at(std::size_t row, Nanoseconds time) const {
  const std::size_t slice = first_ending_after(row, time);
  return slice < row_begin[row + 1] && start_of(slice) <= time ? slice : row_begin[row + 1];
}

std::string short_name(const TimelineTracks& tracks, std::size_t slice) {
  std::string name = tracks.label_of(slice).name;
  if (tracks.microbatch[slice] != kNoMicrobatch)
    name += fmt::format("{}", tracks.microbatch[slice]);
  return name;
}

std::string full_name(const TimelineTracks& tracks, std::size_t slice) {
  const TimelineRow& row = tracks.rows[tracks.row_of(slice)];
  const SliceLabel& label = tracks.label_of(slice);
  std::string name;
  if (row.rank >= 0) name = fmt::format("r{}.", row.rank);
  name += row.label;
  if (label.stage >= 0) name += fmt::format(".s{}", label.stage);
  return name + "." + short_name(tracks, slice);
}

namespace {

std::string in_lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

/// True if `wanted` occurs in the short name, such as "f7" for "F" and micro-batch 7; `reuse`
/// avoids allocations.
bool is_in_short_name(const std::string& label, std::uint16_t microbatch, const std::string& wanted,
                      std::string& reuse) {
  if (microbatch == kNoMicrobatch) return false;  // the label itself has been checked
  std::array<char, 8> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), microbatch).ptr;
  reuse.assign(label);
  reuse.append(digits.data(), end);
  return reuse.find(wanted) != std::string::npos;
}

}  // namespace

std::vector<std::uint32_t> slices_named(const TimelineTracks& tracks, std::string_view text,
                                        std::size_t most) {
  std::vector<std::uint32_t> found;
  const std::string wanted = in_lower_case(std::string(text));
  // A text without digits matches all slices of a label or none, independent of the micro-batch.
  const bool has_digits =
      std::any_of(wanted.begin(), wanted.end(), [](char c) { return c >= '0' && c <= '9'; });
  const bool has_dots = wanted.find('.') != std::string::npos;
  std::string text_of_slice;
  std::vector<std::string> label_names;
  for (const SliceLabel& label : tracks.labels) label_names.push_back(in_lower_case(label.name));
  for (std::size_t row = 0; row < tracks.rows.size() && found.size() < most; ++row) {
    const TimelineRow& r = tracks.rows[row];
    const std::string prefix =
        in_lower_case(r.rank >= 0 ? fmt::format("r{}.{}", r.rank, r.label) : r.label);
    const bool row_matches = prefix.find(wanted) != std::string::npos;
    for (std::size_t s = tracks.row_begin[row]; s < tracks.row_begin[row + 1]; ++s) {
      const auto label = static_cast<std::size_t>(&tracks.label_of(s) - tracks.labels.data());
      bool matches = row_matches || label_names[label].find(wanted) != std::string::npos;
      if (!matches && has_dots)
        matches = in_lower_case(full_name(tracks, s)).find(wanted) != std::string::npos;
      else if (!matches && has_digits)
        matches = is_in_short_name(label_names[label], tracks.microbatch[s], wanted, text_of_slice);
      if (matches) found.push_back(static_cast<std::uint32_t>(s));
      if (found.size() >= most) break;
    }
  }
  std::stable_sort(found.begin(), found.end(), [&](std::uint32_t a, std::uint32_t b) {
    return tracks.start_ns[a] < tracks.start_ns[b];
  });
  return found;
}

std::vector<std::string> check_timeline_tracks(const TimelineTracks& tracks) {
  std::vector<std::string> problems;
  const std::size_t count = tracks.start_ns.size();
  if (tracks.duration_ns.size() != count || tracks.kind.size() != count ||
      tracks.microbatch.size() != count || tracks.label.size() != count)
    return {"columns have different lengths"};
  if (tracks.row_begin.size() != tracks.rows.size() + 1 || tracks.row_begin.front() != 0 ||
      tracks.row_begin.back() != count)
    return {"rows do not cover the slices"};
  for (std::size_t row = 0; row < tracks.rows.size(); ++row) {
    if (tracks.row_begin[row] > tracks.row_begin[row + 1]) return {"rows are not in order"};
    Nanoseconds last(0);
    for (std::size_t s = tracks.row_begin[row]; s < tracks.row_begin[row + 1]; ++s) {
      if (tracks.start_of(s) < last || tracks.end_of(s) < tracks.start_of(s)) {
        problems.push_back(fmt::format("slice {} of row {} starts at {} ns, before {} ns", s, row,
                                       tracks.start_ns[s], last.value));
        break;
      }
      last = tracks.end_of(s);
    }
    if (last > tracks.end) problems.push_back(fmt::format("row {} ends after the end", row));
  }
  for (const SliceArrow& arrow : tracks.arrows)
    if (arrow.from >= count || arrow.to >= count) return {"an arrow refers to a missing slice"};
  return problems;
}

Bytes slice_storage(const TimelineTracks& tracks) {
  const auto held = [](const auto& column) {
    return column.capacity() * sizeof(typename std::decay_t<decltype(column)>::value_type);
  };
  std::size_t bytes = held(tracks.start_ns) + held(tracks.duration_ns) + held(tracks.kind) +
                      held(tracks.microbatch) + held(tracks.label) + held(tracks.long_durations) +
                      held(tracks.far_labels);
  for (const RowCoverage& row : tracks.coverage.rows) {
    bytes += held(row.sums_ns);
    for (const CoverageLevel& level : row.levels) bytes += held(level.shares);
  }
  return Bytes(static_cast<std::int64_t>(bytes));
}

// ---- building -----------------------------------------------------------------------------------

std::size_t TracksBuilder::add_row(TimelineRow row) {
  tracks_.rows.push_back(std::move(row));
  tracks_.row_begin.push_back(tracks_.slice_count());
  row_end_ = std::numeric_limits<std::int64_t>::min();
  return tracks_.rows.size() - 1;
}

std::uint32_t TracksBuilder::label(std::string_view name, std::int32_t stage) {
  std::uint32_t& recent =
      recent_[(std::hash<std::string_view>{}(name) + static_cast<std::size_t>(stage)) %
              recent_.size()];
  if (recent < tracks_.labels.size() && tracks_.labels[recent].stage == stage &&
      tracks_.labels[recent].name == name)
    return recent;
  const auto key = std::pair(std::string(name), stage);
  const auto [at, is_new] = label_of_.try_emplace(key, tracks_.labels.size());
  if (is_new) tracks_.labels.push_back({.name = key.first, .stage = stage});
  return recent = at->second;
}

void TracksBuilder::reserve(std::size_t slices) {
  tracks_.start_ns.reserve(slices);
  tracks_.duration_ns.reserve(slices);
  tracks_.kind.reserve(slices);
  tracks_.microbatch.reserve(slices);
  tracks_.label.reserve(slices);
}

void TracksBuilder::add(const Slice& slice) {
  MW_CHECK(!tracks_.rows.empty());
  MW_CHECK(slice.duration_ns >= 0);
  const std::size_t index = tracks_.slice_count();
  const std::int64_t start = std::max(slice.start_ns, row_end_);
  const std::int64_t end = std::max(start, slice.start_ns + slice.duration_ns);
  repaired_ += start != slice.start_ns;
  row_end_ = end;

  tracks_.start_ns.push_back(start);
  const std::int64_t duration = end - start;
  if (duration < kLongSlice) {
    tracks_.duration_ns.push_back(static_cast<std::uint32_t>(duration));
  } else {
    tracks_.duration_ns.push_back(kLongSlice);
    tracks_.long_durations.emplace_back(index, duration);
  }
  if (slice.label < kFarLabel) {
    tracks_.label.push_back(static_cast<std::uint16_t>(slice.label));
  } else {
    tracks_.label.push_back(kFarLabel);
    tracks_.far_labels.emplace_back(index, slice.label);
  }
  tracks_.kind.push_back(slice.kind);
  tracks_.microbatch.push_back(slice.microbatch);
}

TimelineTracks TracksBuilder::finish() {
  tracks_.row_begin.push_back(tracks_.slice_count());
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (std::size_t row = 0; row < tracks_.rows.size(); ++row)
    if (tracks_.row_begin[row] < tracks_.row_begin[row + 1])
      first = std::min(first, tracks_.start_ns[tracks_.row_begin[row]]);
  if (tracks_.start_ns.empty()) first = 0;
  for (std::int64_t& start : tracks_.start_ns) start -= first;
  tracks_.base = Nanoseconds(first);
  for (Nanoseconds& start : tracks_.iterations) start -= tracks_.base;
  for (MemoryCurveOfRank& curve : tracks_.memory)
    for (MemoryPoint& point : curve.points)
      point.time = std::max(Nanoseconds(0), point.time - tracks_.base);
  tracks_.end = Nanoseconds(0);
  for (std::size_t row = 0; row < tracks_.rows.size(); ++row)
    if (tracks_.row_begin[row] < tracks_.row_begin[row + 1])
      tracks_.end = std::max(tracks_.end, tracks_.end_of(tracks_.row_begin[row + 1] - 1));
  tracks_.coverage = build_coverage(tracks_);
  return std::move(tracks_);
}

// ---- from Meshwright timelines ------------------------------------------------------------------
namespace {

std::string_view without_prefix(std::string_view text, std::string_view prefix) {
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

/// "r12.compute.s3.F7#2" → "F": removes everything that is stored elsewhere.
std::string_view label_name(std::string_view name, std::string_view row_prefix,
                            const TimelineSpan& span) {
  name = without_prefix(name, row_prefix);
  std::array<char, 16> digits;
  const auto number = [&](std::int64_t value) {
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    return std::string_view(digits.data(), static_cast<std::size_t>(end - digits.data()));
  };
  if (span.stage >= 0 && name.starts_with('s')) {
    const std::string_view stage = number(span.stage);
    if (name.substr(1).starts_with(stage) && name.substr(1 + stage.size()).starts_with('.'))
      name.remove_prefix(2 + stage.size());
  }
  if (const std::size_t mark = name.rfind('#'); mark != std::string_view::npos && mark > 0)
    name = name.substr(0, mark);
  if (span.microbatch >= 0) {
    const std::string_view microbatch = number(span.microbatch);
    if (name.ends_with(microbatch) && name.size() > microbatch.size())
      name.remove_suffix(microbatch.size());
  }
  return name;
}

TimelineRow row_of_track(const TimelineTrack& track) {
  return {.label = std::string(meshwright::name_of(track.stream)),
          .rank = track.rank.value,
          .stream = static_cast<std::int32_t>(track.stream),
          .is_compute = track.stream == Stream::kCompute};
}

void add_memory(const std::vector<MemorySample>& samples, TimelineTracks& tracks) {
  for (const MemorySample& sample : samples) {
    if (tracks.memory.empty() || tracks.memory.back().rank != sample.rank)
      tracks.memory.push_back({.rank = sample.rank, .capacity = {}, .points = {}});
    tracks.memory.back().points.push_back(
        {.time = floor_nanoseconds(sample.time), .amounts = sample.amounts});
  }
}

template <class Container>
void free_memory(Container& container) {
  container = Container();  // clear() would keep it
}

void add_arrows(const std::vector<TimelineFlow>& flows, TimelineTracks& tracks) {
  tracks.arrows.reserve(flows.size());
  for (const TimelineFlow& flow : flows)
    tracks.arrows.push_back(
        {static_cast<std::uint32_t>(flow.from), static_cast<std::uint32_t>(flow.to)});
  std::sort(tracks.arrows.begin(), tracks.arrows.end());
}

}  // namespace

TimelineTracks timeline_tracks_of(Timeline timeline) {
  TracksBuilder builder;
  builder.reserve(timeline.spans.size());
  std::size_t next = 0;
  for (std::size_t track = 0; track < timeline.tracks.size(); ++track) {
    TimelineRow row = row_of_track(timeline.tracks[track]);
    const std::string prefix = fmt::format("r{}.{}.", row.rank, row.label);
    builder.add_row(std::move(row));
    for (; next < timeline.spans.size() &&
           timeline.spans[next].track == static_cast<std::int32_t>(track);
         ++next) {
      const TimelineSpan& span = timeline.spans[next];
      const std::string_view name = timeline.names[static_cast<std::size_t>(span.name)];
      const Nanoseconds start = floor_nanoseconds(span.start), end = floor_nanoseconds(span.end);
      builder.add({.start_ns = start.value,
                   .duration_ns = (end - start).value,
                   .label = builder.label(label_name(name, prefix, span), span.stage),
                   .kind = slice_kind_of(span.kind),
                   .microbatch = span.microbatch >= 0 && span.microbatch < kNoMicrobatch
                                     ? static_cast<std::uint16_t>(span.microbatch)
                                     : kNoMicrobatch});
    }
  }
  MW_CHECK(next == timeline.spans.size());
  TimelineTracks& tracks = builder.tracks();
  tracks.origin = timeline.origin;
  for (const Ticks start : recorded_step_starts(timeline))
    tracks.iterations.push_back(floor_nanoseconds(start));
  tracks.provenance = std::move(timeline.provenance);
  free_memory(timeline.names);
  free_memory(timeline.spans);
  add_arrows(timeline.flows, tracks);
  free_memory(timeline.flows);
  add_memory(timeline.memory, tracks);
  free_memory(timeline.memory);
  return builder.finish();
}

}  // namespace meshwright::gui
