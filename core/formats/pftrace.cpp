/// Reads *.pftrace; see pftrace_write.cpp for writing and pftrace_fields.hpp for the layout.
/// Unknown fields are skipped; memory is proportional to the input. A single file of more than 400
/// lines, because all messages of the format share the reader's state.
#include "core/formats/pftrace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <protozero/pbf_reader.hpp>
#include <variant>

#include "core/base/error.hpp"
#include "core/base/value_named.hpp"
#include "core/formats/file.hpp"
#include "core/formats/pftrace_fields.hpp"

namespace meshwright {
namespace pftrace {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

constexpr std::uint32_t field(std::uint32_t number, pbf_wire_type type) {
  return protozero::tag_and_type(number, type);
}
constexpr std::uint32_t varint(std::uint32_t n) { return field(n, pbf_wire_type::varint); }
constexpr std::uint32_t fixed64(std::uint32_t n) { return field(n, pbf_wire_type::fixed64); }
constexpr std::uint32_t sized(std::uint32_t n) { return field(n, pbf_wire_type::length_delimited); }

/// A format error; the byte offset is added by the caller, which knows the packet.
struct Broken {
  std::string what;
};
[[noreturn]] void refuse(std::string what) { throw Broken{std::move(what)}; }
void require(bool condition, const char* what) {
  if (!condition) refuse(what);
}

struct Event {
  std::uint64_t type = 0, track = 0, name = 0;
  std::int64_t counter_value = 0;
  std::optional<std::uint64_t> correlation;
  std::array<std::optional<std::uint64_t>, kNoteCount> notes;
  std::vector<std::uint64_t> flows, terminating_flows;

  std::optional<std::uint64_t> note(Note n) const { return notes[static_cast<std::size_t>(n)]; }
};

struct StreamTrack {
  std::int32_t index;
};
struct CounterTrack {
  std::int32_t rank;
  std::size_t memory_class;
};
struct OtherTrack {};
using TrackRole = std::variant<OtherTrack, StreamTrack, CounterTrack>;

std::optional<MemoryClass> memory_class_named(std::string_view name) {
  constexpr std::string_view kPrefix = "memory ";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  return value_named<MemoryClass>(name, kMemoryClassCount);
}

class TraceReader {
 public:
  /// `size`: of the whole trace.
  TraceReader(std::uint64_t size, std::string_view where,
              const std::function<void(std::size_t)>& progress)
      : size_(size), where_(where), progress_(progress) {}

  /// Reads the whole packets at the start of `bytes`, which follow those that were read before, and
  /// returns their size. `is_end`: nothing follows, so that an incomplete packet is an error.
  std::size_t read_packets(std::string_view bytes, bool is_end) {
    pbf_reader trace(bytes.data(), bytes.size());
    const std::uint64_t begin = offset_;
    try {
      while (const std::optional<Field> next = next_field(trace, is_end)) {
        if (next->packet) read_packet(*next->packet);
        offset_ = begin + (bytes.size() - trace.length());
        report_progress();
      }
    } catch (const protozero::exception& error) {
      fail(fmt::format("invalid protobuf message: {}", error.what()));
    } catch (const Broken& broken) {
      fail(broken.what);
    }
    return static_cast<std::size_t>(offset_ - begin);
  }

  /// After the last packet.
  Timeline finish() {
    try {
      check();
    } catch (const Broken& broken) {
      fail(broken.what);
    }
    return std::move(timeline_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(Diagnostic{fmt::format("{}: byte {}", where_, offset_),
                                fmt::format("not a valid Meshwright timeline: {}", what),
                                "use a .pftrace file written by Meshwright"});
  }

  struct Field {
    std::optional<pbf_reader> packet;  ///< none: a field to skip
  };
  /// None at the end of the bytes, and before a field that is incomplete and may be continued.
  static std::optional<Field> next_field(pbf_reader& trace, bool is_end) {
    const pbf_reader before = trace;
    try {
      if (!trace.next()) return std::nullopt;
      if (trace.tag_and_type() == sized(trace::kPacket)) return Field{trace.get_message()};
      trace.skip();
      return Field{};
    } catch (const protozero::end_of_buffer_exception&) {
      if (is_end) throw;
      trace = before;
      return std::nullopt;
    }
  }

  void report_progress() {
    constexpr std::uint64_t kBytesPerProgress = 4 << 20;
    if (!progress_ || offset_ < reported_ + kBytesPerProgress) return;
    progress_(static_cast<std::size_t>(offset_));
    reported_ = offset_;
  }

  static std::string_view view(pbf_reader& reader) {
    const protozero::data_view data = reader.get_view();
    return {data.data(), data.size()};
  }

  void read_packet(pbf_reader packet_reader) {
    std::uint64_t timestamp = 0;
    std::optional<pbf_reader> event_reader;
    while (packet_reader.next()) switch (packet_reader.tag_and_type()) {
        case varint(packet::kTimestamp):
          timestamp = packet_reader.get_uint64();
          break;
        case sized(packet::kTrackEvent):
          event_reader = packet_reader.get_message();
          break;
        case sized(packet::kInternedData):
          read_interned(packet_reader.get_message());
          break;
        case sized(packet::kTrackDescriptor):
          read_descriptor(packet_reader.get_message());
          break;
        default:
          packet_reader.skip();
      }
    if (event_reader) read_event(*event_reader, timestamp);
  }

  void read_interned(pbf_reader data) {
    while (data.next()) {
      if (data.tag_and_type() != sized(interned::kEventNames)) {
        data.skip();
        continue;
      }
      pbf_reader entry = data.get_message();
      std::uint64_t iid = 0;
      std::string_view name;
      while (entry.next()) switch (entry.tag_and_type()) {
          case varint(interned::kIid):
            iid = entry.get_uint64();
            break;
          case sized(interned::kName):
            name = view(entry);
            break;
          default:
            entry.skip();
        }
      if (iid >= kFirstNameIid) set_name(iid - kFirstNameIid, name);
    }
  }

  struct Descriptor {
    std::uint64_t uuid = 0, parent = 0;
    std::string_view name;
    std::optional<std::int32_t> pid;
  };

  static Descriptor parse_descriptor(pbf_reader track) {
    Descriptor d;
    while (track.next()) switch (track.tag_and_type()) {
        case varint(descriptor::kUuid):
          d.uuid = track.get_uint64();
          break;
        case varint(descriptor::kParentUuid):
          d.parent = track.get_uint64();
          break;
        case sized(descriptor::kName):
          d.name = view(track);
          break;
        case sized(descriptor::kProcess): {
          pbf_reader process = track.get_message();
          while (process.next()) {
            if (process.tag_and_type() == varint(descriptor::kPid))
              d.pid = process.get_int32();
            else
              process.skip();
          }
          break;
        }
        default:
          track.skip();
      }
    return d;
  }

  void read_descriptor(pbf_reader track) {
    const Descriptor d = parse_descriptor(track);
    if (d.pid) {
      require(*d.pid > 0, "process ID out of range");
      rank_of_process_[d.uuid] = *d.pid - 1;
      return;
    }
    const auto parent = rank_of_process_.find(d.parent);
    TrackRole role;
    if (parent != rank_of_process_.end()) {
      if (const auto memory_class = memory_class_named(d.name)) {
        role = CounterTrack{parent->second, static_cast<std::size_t>(*memory_class)};
      } else if (const auto stream = value_named<Stream>(d.name, kStreamCount)) {
        role = StreamTrack{static_cast<std::int32_t>(timeline_.tracks.size())};
        timeline_.tracks.push_back({RankId(parent->second), *stream});
        prefixes_.push_back(derived_prefix(timeline_.tracks.back()));
        open_.emplace_back();
      }
    }
    require(roles_.emplace(d.uuid, role).second, "duplicate track UUID");
  }

  void read_annotation(pbf_reader note, Event& e) {
    std::uint64_t iid = 0, number = 0;
    std::string_view name, text;
    while (note.next()) switch (note.tag_and_type()) {
        case varint(annotation::kNameIid):
          iid = note.get_uint64();
          break;
        case varint(annotation::kUint):
          number = note.get_uint64();
          break;
        case sized(annotation::kString):
          text = view(note);
          break;
        case sized(annotation::kName):
          name = view(note);
          break;
        default:
          note.skip();
      }
    if (iid >= 1 && iid <= kNoteCount) e.notes[iid - 1] = number;
    if (!name.empty()) read_fact(name, number, text);
  }

  /// Named annotations: properties of the whole timeline.
  void read_fact(std::string_view name, std::uint64_t number, std::string_view text) {
    constexpr std::string_view kProvenance = "provenance:";
    // Lower bound on the bytes per name and per flow in the file.
    constexpr std::uint64_t kLeastBytes = 8;
    const std::uint64_t most = size_ / kLeastBytes;
    if (name == "meshwright_timeline") {
      if (number != kFormat)
        refuse(fmt::format("unsupported format {}: expected {}", number, kFormat));
      has_facts_ = true;
    } else if (name == "origin") {
      require(number <= static_cast<std::uint64_t>(TimelineOrigin::kMeasured), "unknown origin");
      timeline_.origin = static_cast<TimelineOrigin>(number);
    } else if (name == "clock") {
      require(number <= static_cast<std::uint64_t>(TimelineClock::kReplay), "unknown clock");
      timeline_.clock = static_cast<TimelineClock>(number);
    } else if (name == "names") {
      require(number <= most, "more names than the file can hold");
      timeline_.names.resize(number);
      name_is_set_.resize(number, false);
    } else if (name == "flows") {
      require(number <= most, "more flows than the file can hold");
      timeline_.flows.resize(number, {-1, -1});
    } else if (name.starts_with(kProvenance)) {
      timeline_.provenance[std::string(name.substr(kProvenance.size()))] = text;
    }
  }

  void read_event(pbf_reader reader, std::uint64_t timestamp) {
    Event& e = event_;  // reuses the memory of its vectors
    e.type = e.track = e.name = 0;
    e.counter_value = 0;
    e.correlation.reset();
    e.notes.fill(std::nullopt);
    e.flows.clear();
    e.terminating_flows.clear();
    while (reader.next()) switch (reader.tag_and_type()) {
        case varint(event::kType):
          e.type = reader.get_uint64();
          break;
        case varint(event::kTrackUuid):
          e.track = reader.get_uint64();
          break;
        case varint(event::kNameIid):
          e.name = reader.get_uint64();
          break;
        case varint(event::kCounterValue):
          e.counter_value = reader.get_int64();
          break;
        case varint(event::kCorrelationId):
          e.correlation = reader.get_uint64();
          break;
        case fixed64(event::kFlowIds):
          e.flows.push_back(reader.get_fixed64());
          break;
        case fixed64(event::kTerminatingFlowIds):
          e.terminating_flows.push_back(reader.get_fixed64());
          break;
        case sized(event::kAnnotation):
          read_annotation(reader.get_message(), e);
          break;
        default:
          reader.skip();
      }
    place_event(e, timestamp);
  }

  void place_event(const Event& e, std::uint64_t timestamp) {
    if (e.track != last_track_ || last_role_ == nullptr) {  // events of a track follow each other
      const auto found = roles_.find(e.track);
      last_track_ = e.track;
      last_role_ = found == roles_.end() ? nullptr : &found->second;
    }
    if (last_role_ == nullptr) return;
    constexpr std::uint64_t kLatest =
        static_cast<std::uint64_t>(Ticks::max().value / kTicksPerNanosecond) - 1;
    require(timestamp <= kLatest, "timestamp out of range");
    const Ticks time(static_cast<std::int64_t>(timestamp) * kTicksPerNanosecond);
    if (const auto* stream = std::get_if<StreamTrack>(last_role_)) {
      if (e.type == event::kBegin) begin_span(e, stream->index, time);
      if (e.type == event::kEnd) end_span(stream->index, time);
    } else if (const auto* counter = std::get_if<CounterTrack>(last_role_)) {
      if (e.type == event::kCounter) add_memory(e, *counter, time);
    }
  }

  static std::int64_t below_nanosecond(std::uint64_t value) {
    return static_cast<std::int64_t>(value % static_cast<std::uint64_t>(kTicksPerNanosecond));
  }

  void begin_span(const Event& e, std::int32_t track, Ticks time) {
    constexpr std::uint64_t kTop = 0x7fffffff, kTopStage = 0x7fff;
    TimelineSpan span;
    span.track = track;
    const std::uint64_t cut_off = e.note(Note::kSubNs).value_or(0);
    require(cut_off < kTicksPerNanosecond * kTicksPerNanosecond, "sub_ns out of range");
    span.start = time + Ticks(below_nanosecond(cut_off / kTicksPerNanosecond));
    span.end = Ticks(below_nanosecond(cut_off));  // whole nanoseconds are added by its END event
    require(e.correlation.value_or(0) <= kTop, "micro-batch out of range");
    if (e.correlation) span.microbatch = static_cast<std::int32_t>(*e.correlation);
    require(e.note(Note::kStage).value_or(0) <= kTopStage, "stage out of range");
    if (e.note(Note::kStage)) span.stage = static_cast<std::int16_t>(*e.note(Note::kStage));
    const bool is_derived = e.name < kFirstNameIid;
    const std::uint64_t kind =
        is_derived ? e.name - kFirstKindIid : e.note(Note::kKind).value_or(kTaskKindCount);
    require(kind < kTaskKindCount, "unknown kind of span");
    span.kind = static_cast<TaskKind>(kind);
    const std::uint64_t name =
        is_derived ? e.note(Note::kTask).value_or(kTop) : e.name - kFirstNameIid;
    require(name < timeline_.names.size(), "name index out of range");
    span.name = static_cast<std::int32_t>(name);
    if (is_derived) set_derived_name(e, span);

    auto& open = open_[static_cast<std::size_t>(track)];
    require(!open, "overlapping spans on one track");
    const std::size_t index = timeline_.spans.size();
    require(index < kTop, "too many spans");
    open = index;
    timeline_.spans.push_back(span);
    for (const std::uint64_t flow : e.flows) set_flow(flow, &TimelineFlow::from, index);
    for (const std::uint64_t flow : e.terminating_flows) set_flow(flow, &TimelineFlow::to, index);
  }

  void end_span(std::int32_t track, Ticks time) {
    auto& open = open_[static_cast<std::size_t>(track)];
    require(open.has_value(), "span END without BEGIN");
    timeline_.spans[*open].end += time;
    open.reset();
  }

  void set_derived_name(const Event& e, const TimelineSpan& span) {
    std::string& name = derived_;
    const std::string& prefix = prefixes_[static_cast<std::size_t>(span.track)];
    name.assign(prefix);
    append_derived_rest(name, span);
    if (const auto copy = e.note(Note::kCopy)) {
      require(*copy <= 0xffffffff, "copy number out of range");
      name += '#';
      append_number(name, static_cast<std::int64_t>(*copy));
    }
    set_name(static_cast<std::uint64_t>(span.name), name);
  }

  void set_name(std::uint64_t index, std::string_view name) {
    require(index < timeline_.names.size(), "name index out of range");
    if (name_is_set_[index]) {
      require(timeline_.names[index] == name, "conflicting definitions of a name");
      return;
    }
    timeline_.names.set(index, name);
    name_is_set_[index] = true;
  }

  void set_flow(std::uint64_t number, std::int32_t TimelineFlow::*end, std::size_t span) {
    require(number >= 1 && number <= timeline_.flows.size(), "flow ID out of range");
    std::int32_t& value = timeline_.flows[number - 1].*end;
    require(value < 0, "duplicate start or end of a flow");
    value = static_cast<std::int32_t>(span);
  }

  void add_memory(const Event& e, const CounterTrack& counter, Ticks time) {
    if (const auto sample = e.note(Note::kSample)) {
      MemorySample next;
      next.time = time + Ticks(below_nanosecond(*sample));
      next.rank = counter.rank;
      if (!timeline_.memory.empty() && timeline_.memory.back().rank == counter.rank)
        next.amounts = timeline_.memory.back().amounts;
      timeline_.memory.push_back(next);
    }
    require(!timeline_.memory.empty() && timeline_.memory.back().rank == counter.rank,
            "memory counter without a sample");
    timeline_.memory.back().amounts.by_class[counter.memory_class] = Bytes(e.counter_value);
  }

  void check() const {
    require(has_facts_, "missing Meshwright metadata");
    const auto is_open = [](const auto& span) { return span.has_value(); };
    require(std::none_of(open_.begin(), open_.end(), is_open), "span BEGIN without END");
    require(std::find(name_is_set_.begin(), name_is_set_.end(), false) == name_is_set_.end(),
            "missing name");
    for (const TimelineFlow& flow : timeline_.flows)
      require(flow.from >= 0 && flow.to >= 0, "flow with only one end");
    const std::vector<std::string> problems = check_timeline(timeline_);
    if (!problems.empty()) refuse(problems.front());
  }

  std::uint64_t size_;
  std::string_view where_;
  const std::function<void(std::size_t)>& progress_;
  std::uint64_t offset_ = 0, reported_ = 0;
  Timeline timeline_;
  bool has_facts_ = false;
  std::vector<bool> name_is_set_;
  std::map<std::uint64_t, std::int32_t> rank_of_process_;
  std::map<std::uint64_t, TrackRole> roles_;
  std::vector<std::optional<std::size_t>> open_;  ///< the running span, by track
  std::vector<std::string> prefixes_;             ///< of derived names, by track
  std::string derived_;                           ///< reuses its memory
  std::uint64_t last_track_ = 0;
  const TrackRole* last_role_ = nullptr;
  Event event_;
};

}  // namespace
}  // namespace pftrace

Timeline timeline_from_pftrace(std::string_view bytes, std::string_view where,
                               const std::function<void(std::size_t)>& progress) {
  pftrace::TraceReader reader(bytes.size(), where, progress);
  reader.read_packets(bytes, true);
  return reader.finish();
}

Timeline read_pftrace(const std::string& path, const std::function<void(std::size_t)>& progress,
                      std::size_t piece) {
  const std::uint64_t size = size_of_file(path, kLargestTraceFile);
  pftrace::TraceReader reader(size, path, progress);
  for (std::uint64_t offset = 0; offset < size;) {
    const std::string bytes = read_part(path, offset, piece);
    const bool is_end = bytes.size() < piece || offset + bytes.size() >= size;
    const std::size_t done = reader.read_packets(bytes, is_end);
    offset += done;
    if (is_end) break;
    if (done == 0) piece *= 2;  // a packet that is larger
  }
  return reader.finish();
}

}  // namespace meshwright
