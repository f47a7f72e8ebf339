/// How a Timeline is encoded in Perfetto's protobuf; shared by the writer and reader of *.pftrace.
/// Field numbers: github.com/google/perfetto, protos/perfetto/trace/{trace_packet, track_event/*,
/// interned_data/*}.proto (v58.2).
///
///   track       process track per rank (pid = rank + 1; pid 0 is Perfetto's idle task), below it
///               one track per stream and one counter track per memory class
///   span        BEGIN and END on its track at whole nanoseconds, rounded down (monotone, so that
///               spans still do not overlap); the remaining picoseconds are in an annotation
///   name        the kind ("F"), so that equal work has the same color; the stable name is derived
///               from rank, stream, stage, kind and micro-batch, and written out only if it differs
///   micro-batch correlation_id: hovering over a span highlights its micro-batch; absent: -1
///   flow        flow_ids and terminating_flow_ids, numbered from 1 in the order of Timeline::flows
///   memory      a counter event per changed class; the first one of a sample is marked
///   provenance  text annotations of the first instant event
#pragma once

#include <cstdint>
#include <string>

#include "core/base/append_number.hpp"
#include "core/timeline/timeline.hpp"

namespace meshwright::pftrace {

namespace trace {
inline constexpr std::uint32_t kPacket = 1;
}
namespace packet {
inline constexpr std::uint32_t kTimestamp = 8, kSequenceId = 10, kTrackEvent = 11,
                               kInternedData = 12, kSequenceFlags = 13, kTrackDescriptor = 60;
inline constexpr std::uint32_t kStateCleared = 1, kNeedsState = 2;  ///< values of kSequenceFlags
}  // namespace packet
namespace descriptor {
inline constexpr std::uint32_t kUuid = 1, kName = 2, kProcess = 3, kParentUuid = 5, kCounter = 8,
                               kChildOrdering = 11, kSiblingOrderRank = 12;
inline constexpr std::uint32_t kExplicitOrder = 3;          ///< value of kChildOrdering
inline constexpr std::uint32_t kPid = 1, kProcessName = 6;  ///< in kProcess
inline constexpr std::uint32_t kUnit = 3, kUnitBytes = 3;   ///< in kCounter, and its value
}  // namespace descriptor
namespace event {
inline constexpr std::uint32_t kAnnotation = 4, kType = 9, kNameIid = 10, kTrackUuid = 11,
                               kName = 23, kCounterValue = 30, kFlowIds = 47,
                               kTerminatingFlowIds = 48, kCorrelationId = 52;
inline constexpr std::uint32_t kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4;  ///< of kType
}  // namespace event
namespace annotation {
inline constexpr std::uint32_t kNameIid = 1, kUint = 3, kString = 6, kName = 10;
}
namespace interned {
inline constexpr std::uint32_t kEventNames = 2, kAnnotationNames = 3;
inline constexpr std::uint32_t kIid = 1, kName = 2;
}  // namespace interned

/// Interned names of annotations, by iid - 1.
enum class Note : std::uint8_t {
  kStage,   ///< absent: -1
  kTask,    ///< index of the name in Timeline::names, if the name is derived
  kSubNs,   ///< (start mod 1 ns) * 1000 + (end mod 1 ns), in ps; absent: 0
  kCopy,    ///< k if the name ends in "#k"
  kKind,    ///< TaskKind, if the name is written out
  kSample,  ///< on the first counter of a memory sample: time mod 1 ns, in ps
};
inline constexpr int kNoteCount = 6;
inline constexpr const char* kNoteNames[kNoteCount] = {"stage", "task", "sub_ns",
                                                       "copy",  "kind", "sample"};

/// Event names: kinds first, then the written-out names, by index in Timeline::names.
inline constexpr std::uint64_t kFirstKindIid = 1;
inline constexpr std::uint64_t kFirstNameIid = 64;
inline constexpr std::uint32_t kSequence = 1;
inline constexpr std::uint64_t kFormat = 1;  ///< annotation "meshwright_timeline"

/// Sorts counters below streams.
inline constexpr std::int32_t kFirstCounterRank = 100;

/// The stable name derived from a span and its track, "r12.compute.s3.F7", of which this is the
/// part of the track.
inline std::string derived_prefix(const TimelineTrack& track) {
  std::string text = "r";
  append_number(text, track.rank.value);
  text += '.';
  text += name_of(track.stream);
  return text;
}
/// Appends the part of the span.
inline void append_derived_rest(std::string& text, const TimelineSpan& span) {
  if (span.stage >= 0) {
    text += ".s";
    append_number(text, span.stage);
  }
  text += '.';
  text += name_of(span.kind);
  if (span.microbatch >= 0) append_number(text, span.microbatch);
}

}  // namespace meshwright::pftrace
