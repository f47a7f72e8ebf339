/// Writes *.pftrace; see pftrace.cpp for reading and pftrace_fields.hpp for the layout.
#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <numeric>
#include <optional>
#include <protozero/pbf_writer.hpp>

#include "core/base/check.hpp"
#include "core/formats/pftrace.hpp"
#include "core/formats/pftrace_fields.hpp"

namespace meshwright {
namespace pftrace {
namespace {

using protozero::pbf_writer;

/// How the name of a span is encoded.
struct NameForm {
  bool derived = false;    ///< derived from the span, except for the copy number
  std::uint64_t copy = 0;  ///< k of a "#k" at the end; 0: none
};

NameForm form_of(std::string_view name, std::string_view derived) {
  if (!name.starts_with(derived)) return {};
  if (name.size() == derived.size()) return {.derived = true};
  if (name[derived.size()] != '#') return {};
  const char* const first = name.data() + derived.size() + 1;
  const char* const last = name.data() + name.size();
  std::uint32_t copy = 0;
  const auto [end, error] = std::from_chars(first, last, copy);
  if (error != std::errc{} || end != last || *first == '0') return {};
  return {.derived = true, .copy = copy};
}

std::uint64_t nanoseconds(Ticks time) {
  return static_cast<std::uint64_t>(time.value / kTicksPerNanosecond);
}
std::uint64_t below_nanosecond(Ticks time) {
  return static_cast<std::uint64_t>(time.value % kTicksPerNanosecond);
}

/// Flow numbers by span: those of span s are numbers[begin[s]] to numbers[begin[s + 1] - 1].
struct FlowEnds {
  std::vector<std::uint32_t> begin, numbers;
};
FlowEnds ends_by_span(const Timeline& timeline, std::int32_t TimelineFlow::*end) {
  FlowEnds ends;
  ends.begin.assign(timeline.spans.size() + 1, 0);
  for (const TimelineFlow& flow : timeline.flows)
    ++ends.begin[static_cast<std::size_t>(flow.*end) + 1];
  std::partial_sum(ends.begin.begin(), ends.begin.end(), ends.begin.begin());
  ends.numbers.resize(timeline.flows.size());
  std::vector<std::uint32_t> next(ends.begin.begin(), ends.begin.end() - 1);
  for (std::size_t f = 0; f < timeline.flows.size(); ++f)
    ends.numbers[next[static_cast<std::size_t>(timeline.flows[f].*end)]++] =
        static_cast<std::uint32_t>(f + 1);
  return ends;
}

/// A protobuf message of at most N bytes, on the stack. For the millions of messages of spans: a
/// pbf_writer reserves the length of each message in the string, and moves its bytes when it is
/// known.
template <std::size_t N>
class ShortMessage {
 public:
  void add_varint(std::uint32_t field, std::uint64_t value) {
    put(std::uint64_t{field} << 3 | std::uint64_t{0});
    put(value);
  }
  void add_fixed64(std::uint32_t field, std::uint64_t value) {
    put(std::uint64_t{field} << 3 | std::uint64_t{1});
    for (int byte = 0; byte < 8; ++byte) bytes_[size_++] = static_cast<char>(value >> (8 * byte));
  }
  void add_message(std::uint32_t field, std::string_view bytes) {
    add_head(field, bytes.size());
    std::copy(bytes.begin(), bytes.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(size_));
    size_ += bytes.size();
  }
  /// Of a message of `size` bytes that follows.
  void add_head(std::uint32_t field, std::size_t size) {
    put(std::uint64_t{field} << 3 | std::uint64_t{2});
    put(size);
  }
  std::string_view bytes() const { return {bytes_.data(), size_}; }

 private:
  void put(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_[size_++] = static_cast<char>(value | 0x80);
    bytes_[size_++] = static_cast<char>(value);
  }

  std::array<char, N> bytes_;
  std::size_t size_ = 0;
};

/// Fields of at most 2 bytes of tag and 10 of value: type, track, name, correlation and four notes.
/// Flows are appended where there are any.
using EventMessage = ShortMessage<192>;

void add_note(EventMessage& e, Note note, std::uint64_t value) {
  ShortMessage<16> a;
  a.add_varint(annotation::kNameIid, 1 + static_cast<std::uint64_t>(note));
  a.add_varint(annotation::kUint, value);
  e.add_message(event::kAnnotation, a.bytes());
}

class TraceWriter {
 public:
  explicit TraceWriter(const Timeline& timeline) : timeline_(timeline) {
    constexpr std::size_t kBytesPerSpan = 72, kBytesPerSample = 48;
    bytes_.reserve(kBytesPerSpan * (timeline.spans.size() + 16) +
                   kBytesPerSample * timeline.memory.size());
  }

  std::string write() {
    write_interned();
    for (const TimelineTrack& track : timeline_.tracks) write_stream_track(track);
    write_provenance();
    write_spans();
    write_memory();
    return std::move(bytes_);
  }

 private:
  /// Stream tracks get the smallest (shortest) UUIDs, because every span refers to one.
  std::uint64_t uuid_of_track(std::int32_t track) const {
    return 1 + static_cast<std::uint64_t>(track);
  }
  std::uint64_t next_uuid() { return 1 + timeline_.tracks.size() + other_tracks_++; }

  static void add_interned(pbf_writer& data, std::uint32_t list, std::uint64_t iid,
                           std::string_view name) {
    pbf_writer entry(data, list);
    entry.add_uint64(interned::kIid, iid);
    entry.add_string(interned::kName, name.data(), name.size());
  }
  static void add_text(pbf_writer& event_writer, std::string_view name, std::string_view value) {
    pbf_writer a(event_writer, event::kAnnotation);
    a.add_string(annotation::kName, name.data(), name.size());
    a.add_string(annotation::kString, value.data(), value.size());
  }
  static void add_number(pbf_writer& event_writer, std::string_view name, std::uint64_t value) {
    pbf_writer a(event_writer, event::kAnnotation);
    a.add_string(annotation::kName, name.data(), name.size());
    a.add_uint64(annotation::kUint, value);
  }

  void write_interned() {
    pbf_writer p(trace_, trace::kPacket);
    p.add_uint32(packet::kSequenceId, kSequence);
    p.add_uint32(packet::kSequenceFlags, packet::kStateCleared);
    pbf_writer data(p, packet::kInternedData);
    for (int k = 0; k < kTaskKindCount; ++k)
      add_interned(data, interned::kEventNames, kFirstKindIid + static_cast<std::uint64_t>(k),
                   name_of(static_cast<TaskKind>(k)));
    for (int n = 0; n < kNoteCount; ++n)
      add_interned(data, interned::kAnnotationNames, 1 + static_cast<std::uint64_t>(n),
                   kNoteNames[n]);
  }

  std::uint64_t process_track(std::int32_t rank) {
    const auto [known, is_new] = processes_.try_emplace(rank, 0);
    if (!is_new) return known->second;
    known->second = next_uuid();
    std::string name = "rank ";
    append_number(name, rank);
    pbf_writer p(trace_, trace::kPacket);
    pbf_writer track(p, packet::kTrackDescriptor);
    track.add_uint64(descriptor::kUuid, known->second);
    track.add_uint32(descriptor::kChildOrdering, descriptor::kExplicitOrder);
    pbf_writer process(track, descriptor::kProcess);
    process.add_int32(descriptor::kPid, rank + 1);
    process.add_string(descriptor::kProcessName, name);
    return known->second;
  }

  void write_stream_track(const TimelineTrack& stream) {
    const std::uint64_t parent = process_track(stream.rank.value);
    const auto index = static_cast<std::int32_t>(&stream - timeline_.tracks.data());
    const std::string_view name = name_of(stream.stream);
    pbf_writer p(trace_, trace::kPacket);
    pbf_writer track(p, packet::kTrackDescriptor);
    track.add_uint64(descriptor::kUuid, uuid_of_track(index));
    track.add_string(descriptor::kName, name.data(), name.size());
    track.add_uint64(descriptor::kParentUuid, parent);
    track.add_int32(descriptor::kSiblingOrderRank, static_cast<std::int32_t>(stream.stream));
  }

  std::uint64_t write_counter_track(std::int32_t rank, std::size_t memory_class) {
    const std::uint64_t parent = process_track(rank);
    const std::uint64_t uuid = next_uuid();
    const std::string name =
        "memory " + std::string(name_of(static_cast<MemoryClass>(memory_class)));
    pbf_writer p(trace_, trace::kPacket);
    pbf_writer track(p, packet::kTrackDescriptor);
    track.add_uint64(descriptor::kUuid, uuid);
    track.add_string(descriptor::kName, name);
    track.add_uint64(descriptor::kParentUuid, parent);
    track.add_int32(descriptor::kSiblingOrderRank,
                    kFirstCounterRank + static_cast<std::int32_t>(memory_class));
    pbf_writer counter(track, descriptor::kCounter);
    counter.add_int32(descriptor::kUnit, descriptor::kUnitBytes);
    return uuid;
  }

  void write_provenance() {
    const std::uint64_t uuid = next_uuid();
    {
      pbf_writer p(trace_, trace::kPacket);
      pbf_writer track(p, packet::kTrackDescriptor);
      track.add_uint64(descriptor::kUuid, uuid);
      track.add_string(descriptor::kName, "meshwright");
    }
    pbf_writer p(trace_, trace::kPacket);
    p.add_uint64(packet::kTimestamp, 0);
    p.add_uint32(packet::kSequenceId, kSequence);
    pbf_writer e(p, packet::kTrackEvent);
    e.add_uint32(event::kType, event::kInstant);
    e.add_uint64(event::kTrackUuid, uuid);
    e.add_string(event::kName, "provenance");
    add_number(e, "meshwright_timeline", kFormat);
    add_number(e, "origin", static_cast<std::uint64_t>(timeline_.origin));
    add_number(e, "clock", static_cast<std::uint64_t>(timeline_.clock));
    add_number(e, "names", timeline_.names.size());
    add_number(e, "flows", timeline_.flows.size());
    for (const auto& [key, value] : timeline_.provenance) add_text(e, "provenance:" + key, value);
  }

  /// Names that cannot be derived from a span, written first as interned event names.
  void write_spans() {
    const std::vector<NameForm> forms = name_forms();
    write_names(forms);
    const FlowEnds from = ends_by_span(timeline_, &TimelineFlow::from);
    const FlowEnds to = ends_by_span(timeline_, &TimelineFlow::to);
    for (std::size_t s = 0; s < forms.size(); ++s) {
      write_begin(s, forms[s], from, to);
      write_end(timeline_.spans[s]);
    }
  }

  /// Names are in the order of tasks, spans by track: without the prefetch, almost every name is a
  /// cache miss.
  std::vector<NameForm> name_forms() const {
    constexpr std::size_t kAhead = 16;
    const std::size_t count = timeline_.spans.size();
    std::vector<NameForm> forms(count);
    std::string derived;
    std::size_t prefix = 0;
    for (std::size_t s = 0; s < count; ++s) {
      if (s + 2 * kAhead < count) timeline_.names.prefetch_place(name_index(s + 2 * kAhead));
      if (s + kAhead < count) timeline_.names.prefetch_text(name_index(s + kAhead));
      const TimelineSpan& span = timeline_.spans[s];
      if (s == 0 || span.track != timeline_.spans[s - 1].track) {
        derived = derived_prefix(timeline_.tracks[static_cast<std::size_t>(span.track)]);
        prefix = derived.size();
      }
      derived.resize(prefix);
      append_derived_rest(derived, span);
      forms[s] = form_of(timeline_.names[name_index(s)], derived);
    }
    return forms;
  }
  std::size_t name_index(std::size_t span) const {
    return static_cast<std::size_t>(timeline_.spans[span].name);
  }

  void write_names(const std::vector<NameForm>& forms) {
    std::vector<bool> implied(timeline_.names.size(), false);
    std::vector<bool> written_out(timeline_.names.size(), false);
    for (std::size_t s = 0; s < forms.size(); ++s)
      (forms[s].derived ? implied : written_out)[name_index(s)] = true;
    for (std::size_t n = 0; n < timeline_.names.size(); ++n)
      if (written_out[n] || !implied[n]) write_name(n);
  }

  void write_name(std::size_t index) {
    pbf_writer p(trace_, trace::kPacket);
    p.add_uint32(packet::kSequenceId, kSequence);
    p.add_uint32(packet::kSequenceFlags, packet::kNeedsState);
    pbf_writer data(p, packet::kInternedData);
    add_interned(data, interned::kEventNames, kFirstNameIid + index, timeline_.names[index]);
  }

  void write_begin(std::size_t s, const NameForm& form, const FlowEnds& from, const FlowEnds& to) {
    const TimelineSpan& span = timeline_.spans[s];
    const auto kind = static_cast<std::uint64_t>(span.kind);
    const auto name = static_cast<std::uint64_t>(span.name);
    EventMessage e = event_of(event::kBegin, uuid_of_track(span.track));
    e.add_varint(event::kNameIid, form.derived ? kFirstKindIid + kind : kFirstNameIid + name);
    if (span.microbatch >= 0)
      e.add_varint(event::kCorrelationId, static_cast<std::uint64_t>(span.microbatch));
    if (span.stage >= 0) add_note(e, Note::kStage, static_cast<std::uint64_t>(span.stage));
    if (form.derived)
      add_note(e, Note::kTask, name);
    else
      add_note(e, Note::kKind, kind);
    if (form.copy > 0) add_note(e, Note::kCopy, form.copy);
    const std::uint64_t cut_off =
        below_nanosecond(span.start) * kTicksPerNanosecond + below_nanosecond(span.end);
    if (cut_off > 0) add_note(e, Note::kSubNs, cut_off);
    if (from.begin[s] == from.begin[s + 1] && to.begin[s] == to.begin[s + 1])
      return write_event(span.start, event::kBegin, e.bytes());
    std::string with_flows(e.bytes());
    const auto add = [&](std::uint32_t field, const FlowEnds& ends) {
      for (std::uint32_t i = ends.begin[s]; i < ends.begin[s + 1]; ++i) {
        ShortMessage<16> flow;
        flow.add_fixed64(field, ends.numbers[i]);
        with_flows += flow.bytes();
      }
    };
    add(event::kFlowIds, from);
    add(event::kTerminatingFlowIds, to);
    write_event(span.start, event::kBegin, with_flows);
  }

  void write_end(const TimelineSpan& span) {
    write_event(span.end, event::kEnd, event_of(event::kEnd, uuid_of_track(span.track)).bytes());
  }

  static EventMessage event_of(std::uint32_t type, std::uint64_t track) {
    EventMessage e;
    e.add_varint(event::kType, type);
    e.add_varint(event::kTrackUuid, track);
    return e;
  }

  /// Ends refer to no interned names.
  void write_event(Ticks time, std::uint32_t type, std::string_view event_bytes) {
    ShortMessage<64> p;
    p.add_varint(packet::kTimestamp, nanoseconds(time));
    p.add_varint(packet::kSequenceId, kSequence);
    if (type != event::kEnd) p.add_varint(packet::kSequenceFlags, packet::kNeedsState);
    p.add_head(packet::kTrackEvent, event_bytes.size());
    ShortMessage<16> head;
    head.add_head(trace::kPacket, p.bytes().size() + event_bytes.size());
    bytes_ += head.bytes();
    bytes_ += p.bytes();
    bytes_ += event_bytes;
  }

  /// A sample without changes repeats the weights, so that it is not lost.
  void write_memory() {
    std::array<std::uint64_t, kMemoryClassCount> uuids{};  // of the current rank; 0: none yet
    MemoryAmounts known;
    std::optional<std::int32_t> rank;
    for (const MemorySample& sample : timeline_.memory) {
      if (rank != sample.rank) {
        rank = sample.rank;
        uuids = {};
        known = {};
      }
      bool first = true;
      for (std::size_t c = 0; c < uuids.size(); ++c) {
        const bool repeats = c == 0 && sample.amounts == known;
        if (sample.amounts.by_class[c] == known.by_class[c] && !repeats) continue;
        if (uuids[c] == 0) uuids[c] = write_counter_track(sample.rank, c);
        write_counter(sample, c, uuids[c], first);
        first = false;
      }
      known = sample.amounts;
    }
  }

  void write_counter(const MemorySample& sample, std::size_t memory_class, std::uint64_t uuid,
                     bool first) {
    EventMessage e = event_of(event::kCounter, uuid);
    e.add_varint(event::kCounterValue,
                 static_cast<std::uint64_t>(sample.amounts.by_class[memory_class].value));
    if (first) add_note(e, Note::kSample, below_nanosecond(sample.time));
    write_event(sample.time, event::kCounter, e.bytes());
  }

  const Timeline& timeline_;
  std::string bytes_;
  pbf_writer trace_{bytes_};
  std::map<std::int32_t, std::uint64_t> processes_;
  std::uint64_t other_tracks_ = 0;
};

}  // namespace
}  // namespace pftrace

std::string to_pftrace(const Timeline& timeline) {
  MW_CHECK(check_timeline(timeline).empty());
  return pftrace::TraceWriter(timeline).write();
}

}  // namespace meshwright
