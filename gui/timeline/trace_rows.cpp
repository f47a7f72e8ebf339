#include "gui/timeline/trace_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <optional>

#include "core/base/number_from_text.hpp"

namespace meshwright::gui {
namespace {

/// Maximum nesting depth; each level is a row.
constexpr std::size_t kDeepest = 4;
/// Slices further than this (52 days) from the median have invalid clocks.
constexpr std::int64_t kFarthest = std::int64_t{1} << 52;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string_view text_at(const TraceEvents& events, std::int32_t index) {
  return index < 0 ? std::string_view() : events.names[static_cast<std::size_t>(index)];
}

const TraceDetail* detail_of(const TraceEvents& events, const TraceSlice& slice) {
  return slice.detail < 0 ? nullptr : &events.details[static_cast<std::size_t>(slice.detail)];
}

std::optional<std::int32_t> number_at(std::string_view& text) {
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::optional<Stream> stream_named(std::string_view name) {
  for (int s = 0; s < kStreamCount; ++s)
    if (name_of(static_cast<Stream>(s)) == name) return static_cast<Stream>(s);
  return std::nullopt;
}

}  // namespace

std::optional<PipelineAction> pipeline_action(std::string_view name) {
  constexpr std::string_view kPrefix = "PP:";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  PipelineAction action;
  const auto stage = number_at(name);
  if (!stage || name.empty()) return std::nullopt;
  constexpr std::string_view kLetters = "FBIW";  // in the order of SliceKind
  const std::size_t kind = kLetters.find(name.front());
  if (kind == std::string_view::npos) return std::nullopt;
  action.kind = static_cast<SliceKind>(kind);
  name.remove_prefix(1);
  const auto microbatch = number_at(name);
  if (!microbatch || !name.empty()) return std::nullopt;
  action.stage = *stage;
  action.microbatch = *microbatch;
  return action;
}

SliceKind kind_of(const TraceEvents& events, const TraceSlice& slice) {
  const std::string_view name = events.names[slice.name];
  const std::string_view category = text_at(events, slice.category);
  const TraceDetail* detail = detail_of(events, slice);
  if (detail != nullptr && detail->task >= 0)
    for (int k = 0; k < kTaskKindCount; ++k)
      if (name_of(static_cast<TaskKind>(k)) == name) return static_cast<SliceKind>(k);
  if (const auto action = pipeline_action(name)) return action->kind;
  if (category == "gpu_memcpy" || category == "gpu_memset") return SliceKind::kCopy;
  const bool is_nccl = contains(name, "nccl") || contains(name, "rccl");
  if (is_nccl && (category == "kernel" || category == "gpu_user_annotation")) {
    const std::string_view collective =
        detail == nullptr ? std::string_view() : text_at(events, detail->collective);
    if (collective == "send" || collective == "isend") return SliceKind::kSend;
    if (collective == "recv" || collective == "irecv" || contains(name, "SendRecv"))
      return SliceKind::kReceive;
    return SliceKind::kCollective;
  }
  if (category == "kernel") return kernel_family(name);
  if (contains(name, "Optimizer.step")) return SliceKind::kOptimizer;
  return SliceKind::kHost;
}

namespace {

/// Role of a thread in a trace.
enum class ThreadRole : std::uint8_t { kOurs, kPasses, kDevice, kAnnotation, kHost };

/// Slices of one thread and nesting depth, which become a row.
struct ThreadLane {
  std::uint32_t thread = 0;
  std::size_t depth = 0;
  std::int64_t kernel_ns = 0;  ///< total time of compute kernels
  bool has_passes = false, on_device = false;
  std::vector<std::uint32_t> slices;  ///< by start
};

/// Kinds of slices without details, by name and category; traces repeat a few thousand names.
class KindCache {
 public:
  explicit KindCache(const TraceEvents& events) : events_(events), of_name_(events.names.size()) {}
  SliceKind of(const TraceSlice& slice) {
    if (slice.detail >= 0) return kind_of(events_, slice);
    Entry& entry = of_name_[slice.name];
    if (!entry.kind || entry.category != slice.category)
      entry = {slice.category, kind_of(events_, slice)};
    return *entry.kind;
  }

 private:
  struct Entry {
    std::int32_t category = -1;
    std::optional<SliceKind> kind;
  };
  const TraceEvents& events_;
  std::vector<Entry> of_name_;
};

/// Splits threads into lanes by nesting depth: a slice is
/// placed below all slices that are open when it starts.
std::vector<ThreadLane> lanes_of(const TraceEvents& events, std::vector<std::uint32_t> order,
                                 KindCache& kinds, std::size_t& too_deep) {
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const TraceSlice &x = events.slices[a], &y = events.slices[b];
    // Outer slices first; empty slices before others with the same start.
    return std::tuple(x.thread, x.start_ns, x.duration_ns > 0, -x.duration_ns) <
           std::tuple(y.thread, y.start_ns, y.duration_ns > 0, -y.duration_ns);
  });
  std::vector<ThreadLane> lanes;
  std::vector<std::int64_t> ends;  ///< end of the last slice at each depth
  std::size_t first_lane = 0;
  std::uint32_t thread = std::numeric_limits<std::uint32_t>::max();
  for (const std::uint32_t index : order) {
    const TraceSlice& slice = events.slices[index];
    if (slice.thread != thread) {
      thread = slice.thread;
      ends.clear();
      first_lane = lanes.size();
    }
    // Kineto's device annotations start one nanosecond early and end two late, by design.
    constexpr std::int64_t kTolerance = 3;
    std::size_t depth = 0;
    while (depth < ends.size() && ends[depth] > slice.start_ns + kTolerance) ++depth;
    if (depth >= kDeepest) {
      ++too_deep;
      continue;
    }
    if (depth == ends.size()) {
      ends.push_back(0);
      lanes.push_back({.thread = thread, .depth = depth, .slices = {}});
    }
    ends[depth] = slice.start_ns + slice.duration_ns;
    ends.resize(std::max<std::size_t>(depth + 1, ends.size()));
    ThreadLane& lane = lanes[first_lane + depth];
    lane.slices.push_back(index);
    const SliceKind kind = kinds.of(slice);
    if (is_kernel(kind)) lane.kernel_ns += slice.duration_ns;
    if (is_pass(kind)) lane.has_passes = true;
    const std::string_view category = text_at(events, slice.category);
    if (category == "kernel" || category.starts_with("gpu_")) lane.on_device = true;
  }
  return lanes;
}

/// Threads of several processes are told apart by the names of their processes.
std::string lane_label(const TraceEvents& events, const ThreadLane& lane, bool with_process) {
  const TraceThread& thread = events.threads[lane.thread];
  std::string label = !thread.name.empty() ? thread.name : fmt::format("thread {}", thread.id);
  if (with_process)
    label =
        (thread.process.empty() ? "process " + thread.process_id : thread.process) + ": " + label;
  if (lane.depth > 0) label += fmt::format(" ({})", lane.depth + 1);
  return label;
}

constexpr std::string_view kStepPrefix = "ProfilerStep#";

struct StepMark {
  bool is_on_device = false;
  std::int64_t start_ns = 0;
};

class RowsOfTraces {
 public:
  explicit RowsOfTraces(const std::vector<RankTrace>& traces) : traces_(traces) {}

  TimelineTracks build() {
    std::size_t count = 0;
    for (const RankTrace& trace : traces_) count += trace.events.slices.size();
    builder_.reserve(count);
    set_reference();
    for (const RankTrace& trace : traces_) add(trace);
    TimelineTracks& tracks = builder_.tracks();
    tracks.origin = traces_.size() == 1 && traces_[0].events.origin == "predicted"
                        ? TimelineOrigin::kPredicted
                        : TimelineOrigin::kMeasured;
    for (const auto& [number, mark] : steps_) tracks.iterations.emplace_back(mark.start_ns);
    std::sort(tracks.iterations.begin(), tracks.iterations.end());
    std::sort(tracks.arrows.begin(), tracks.arrows.end());
    std::stable_sort(tracks.memory.begin(), tracks.memory.end(),
                     [](const auto& a, const auto& b) { return a.rank < b.rank; });
    note(dropped_, "invalid events dropped");
    note(too_deep_, fmt::format("slices nested deeper than {} levels, not shown", kDeepest));
    note(far_, "slices more than 52 days away from the others, not shown");
    note(builder_.repaired(), "slices shortened because they overlapped others on their stream");
    return builder_.finish();
  }

 private:
  void note(std::size_t count, std::string_view what) {
    if (count > 0) builder_.tracks().notes.push_back(fmt::format("{}: {}", what, count));
  }

  void set_reference() {
    std::vector<std::int64_t> starts;
    for (const RankTrace& trace : traces_)
      for (const TraceSlice& slice : trace.events.slices)
        starts.push_back(slice.start_ns + trace.clock_shift_ns);
    if (starts.empty()) return;
    const auto middle = starts.begin() + static_cast<std::ptrdiff_t>(starts.size() / 2);
    std::nth_element(starts.begin(), middle, starts.end());
    reference_ = *middle;
  }

  void add(const RankTrace& trace) {
    const TraceEvents& events = trace.events;
    dropped_ += events.dropped;
    std::vector<std::uint32_t> order;
    order.reserve(events.slices.size());
    for (std::size_t i = 0; i < events.slices.size(); ++i) {
      const std::int64_t away = events.slices[i].start_ns + trace.clock_shift_ns - reference_;
      if (away > -kFarthest && away < kFarthest && events.slices[i].duration_ns < kFarthest)
        order.push_back(static_cast<std::uint32_t>(i));
      else
        ++far_;
    }
    KindCache kinds(events);
    std::vector<ThreadLane> lanes = lanes_of(events, std::move(order), kinds, too_deep_);
    has_processes_ = has_host_processes(trace, lanes);
    // Compute lane first, then other device lanes, then host lanes; otherwise in input order.
    const std::size_t compute = compute_lane(lanes);
    std::vector<std::size_t> places(lanes.size());
    std::iota(places.begin(), places.end(), std::size_t{0});
    std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
      const auto key = [&](std::size_t l) { return std::tuple(l != compute, !lanes[l].on_device); };
      return key(a) < key(b);
    });
    std::vector<std::size_t> first_of_lane(lanes.size());
    for (const std::size_t l : places) {
      first_of_lane[l] = builder_.slice_count();
      add_lane(trace, lanes[l], l == compute, kinds);
    }
    add_memory(trace);
    add_flows(trace, lanes, first_of_lane);
  }

  /// Chrome traces of programs without a device may have several processes.
  static bool has_host_processes(const RankTrace& trace, const std::vector<ThreadLane>& lanes) {
    const std::vector<TraceThread>& threads = trace.events.threads;
    return !is_ours(trace) && !trace.events.rank &&
           std::none_of(lanes.begin(), lanes.end(),
                        [](const auto& lane) { return lane.on_device; }) &&
           std::any_of(threads.begin(), threads.end(), [&](const TraceThread& thread) {
             return thread.process_id != threads.front().process_id;
           });
  }

  /// The lane with passes, preferably on the device; else the stream with the most kernel time.
  static std::size_t compute_lane(const std::vector<ThreadLane>& lanes) {
    std::size_t best = lanes.size();
    const auto weight = [&](const ThreadLane& lane) {
      return std::tuple(lane.has_passes, lane.has_passes && lane.on_device, lane.kernel_ns);
    };
    for (std::size_t l = 0; l < lanes.size(); ++l)
      if ((lanes[l].has_passes || lanes[l].kernel_ns > 0) &&
          (best == lanes.size() || weight(lanes[best]) < weight(lanes[l])))
        best = l;
    return best;
  }

  std::int32_t rank_of(const RankTrace& trace, const TraceThread& thread) const {
    if (trace.events.rank || traces_.size() > 1) return trace.rank;
    // In Meshwright files each process is a rank.
    const auto value = number_from_text<std::int32_t>(thread.process_id);
    if (value && *value >= 0 && is_ours(trace)) return *value;
    return trace.rank;
  }
  static bool is_ours(const RankTrace& trace) { return trace.events.origin.has_value(); }

  void add_lane(const RankTrace& trace, const ThreadLane& lane, bool is_compute, KindCache& kinds) {
    const TraceEvents& events = trace.events;
    const TraceThread& thread = events.threads[lane.thread];
    TimelineRow row{.label = lane_label(events, lane, has_processes_),
                    .rank = rank_of(trace, thread)};
    const auto stream = is_ours(trace) ? stream_named(thread.name) : std::nullopt;
    if (stream && lane.depth == 0) {
      row.stream = static_cast<std::int32_t>(*stream);
      row.is_compute = *stream == Stream::kCompute;
    } else if (is_compute && !is_ours(trace)) {
      row.stream = static_cast<std::int32_t>(Stream::kCompute);
      row.is_compute = true;
    }
    builder_.add_row(std::move(row));
    for (const std::uint32_t index : lane.slices) add_slice(trace, events.slices[index], kinds);
  }

  void add_slice(const RankTrace& trace, const TraceSlice& slice, KindCache& kinds) {
    const TraceEvents& events = trace.events;
    const std::string_view name = events.names[slice.name];
    const TraceDetail* detail = detail_of(events, slice);
    std::int32_t microbatch = -1, stage = -1;
    std::string_view label = name;
    if (detail != nullptr) microbatch = detail->microbatch, stage = detail->stage;
    const SliceKind kind = kinds.of(slice);
    if (const auto action = pipeline_action(name)) {
      microbatch = action->microbatch, stage = action->stage;
      label = name_of(kind);
    }
    if (name.starts_with(kStepPrefix)) add_step(trace, slice);
    const bool has_microbatch = microbatch >= 0 && microbatch < kNoMicrobatch;
    builder_.add(
        {.start_ns = slice.start_ns + trace.clock_shift_ns,
         .duration_ns = slice.duration_ns,
         .label = builder_.label(label, stage),
         .kind = kind,
         .microbatch = has_microbatch ? static_cast<std::uint16_t>(microbatch) : kNoMicrobatch});
  }

  /// PyTorch marks a step on the host, newer versions also on the device, where its kernels start
  /// later. Of all ranks, the first mark counts, those on devices before all others.
  void add_step(const RankTrace& trace, const TraceSlice& slice) {
    const TraceEvents& events = trace.events;
    const std::string_view number =
        std::string_view(events.names[slice.name]).substr(kStepPrefix.size());
    const bool is_on_device =
        slice.category >= 0 &&
        events.names[static_cast<std::size_t>(slice.category)] == "gpu_user_annotation";
    const StepMark mark{is_on_device, slice.start_ns + trace.clock_shift_ns};
    const auto [known, is_new] = steps_.emplace(number, mark);
    StepMark& best = known->second;
    if (is_new || is_on_device < best.is_on_device) return;
    if (is_on_device > best.is_on_device || mark.start_ns < best.start_ns) best = mark;
  }

  void add_memory(const RankTrace& trace) {
    std::map<std::int32_t, MemoryCurveOfRank> curves;
    for (const TraceMemory& sample : trace.events.memory) {
      TraceThread process;
      process.process_id = sample.process_id;
      const std::int32_t rank = rank_of(trace, process);
      MemoryCurveOfRank& curve = curves[rank];
      curve.rank = rank;
      curve.points.push_back(
          {.time = Nanoseconds(sample.time_ns + trace.clock_shift_ns), .amounts = sample.amounts});
    }
    for (auto& [rank, curve] : curves) {
      std::stable_sort(curve.points.begin(), curve.points.end(),
                       [](const MemoryPoint& a, const MemoryPoint& b) { return a.time < b.time; });
      builder_.tracks().memory.push_back(std::move(curve));
    }
  }

  /// Connects the innermost slices that cover both ends of a flow.
  void add_flows(const RankTrace& trace, const std::vector<ThreadLane>& lanes,
                 const std::vector<std::size_t>& first_of_lane) {
    const TraceEvents& events = trace.events;
    std::map<std::uint32_t, std::vector<std::size_t>> lanes_of_thread;
    for (std::size_t l = 0; l < lanes.size(); ++l) lanes_of_thread[lanes[l].thread].push_back(l);
    const auto slice_at = [&](std::uint32_t thread,
                              std::int64_t time) -> std::optional<std::size_t> {
      std::optional<std::size_t> found;
      for (const std::size_t l : lanes_of_thread[thread]) {
        const auto& slices = lanes[l].slices;
        const auto after = std::upper_bound(
            slices.begin(), slices.end(), time,
            [&](std::int64_t t, std::uint32_t s) { return t < events.slices[s].start_ns; });
        if (after == slices.begin()) continue;
        const TraceSlice& slice = events.slices[*(after - 1)];
        if (time <= slice.start_ns +
                        slice.duration_ns)  // deeper lanes come later, so the innermost slice wins
          found = first_of_lane[l] + static_cast<std::size_t>(after - 1 - slices.begin());
      }
      return found;
    };
    for (const TraceFlow& flow : events.flows) {
      const auto from = slice_at(flow.from_thread, flow.from_ns);
      const auto to = slice_at(flow.to_thread, flow.to_ns);
      if (from && to && *from != *to)
        builder_.tracks().arrows.push_back(
            {static_cast<std::uint32_t>(*from), static_cast<std::uint32_t>(*to)});
    }
  }

  const std::vector<RankTrace>& traces_;
  TracksBuilder builder_;
  std::map<std::string, StepMark, std::less<>> steps_;  ///< by number
  std::int64_t reference_ = 0;
  bool has_processes_ = false;  ///< in the trace that is being added
  std::size_t dropped_ = 0, too_deep_ = 0, far_ = 0;
};

}  // namespace

TimelineTracks tracks_of_events(const std::vector<RankTrace>& traces) {
  return RowsOfTraces(traces).build();
}

}  // namespace meshwright::gui
