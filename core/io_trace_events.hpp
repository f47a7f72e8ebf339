/// Chrome trace-event JSON as profilers write it, PyTorch's Kineto above all (github.com/pytorch/
/// kineto, libkineto/src/output_json.cpp): one pass, columns, no values built. A million events
/// take about a second. Format: "Trace Event Format", Google, 2016; what Perfetto accepts is
/// accepted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/memory_amounts.hpp"

namespace meshwright {

struct TraceThread {
  std::string process, name;   ///< as metadata say; may be empty
  std::string process_id, id;  ///< as written: numbers or text
  friend bool operator==(const TraceThread&, const TraceThread&) = default;
};

/// What some slices say of themselves; -1: nothing.
struct TraceDetail {
  std::int32_t microbatch = -1, stage = -1;
  std::int32_t collective = -1;                ///< name of it, in TraceEvents::names
  std::int32_t group = -1;                     ///< name of its process group, in TraceEvents::names
  std::int64_t sequence = -1;                  ///< counts a group's collectives
  std::int32_t source = -1, destination = -1;  ///< of a message, ranks in the group
  std::int32_t task = -1;  ///< stable name of one of our tasks, in TraceEvents::names
  friend bool operator==(const TraceDetail&, const TraceDetail&) = default;
};

struct TraceSlice {
  std::int64_t start_ns = 0;     ///< baseTimeNanoseconds added
  std::int64_t duration_ns = 0;  ///< ≥ 0
  std::uint32_t thread = 0, name = 0;
  std::int32_t category = -1;  ///< in names
  std::int32_t detail = -1;    ///< in details
  friend bool operator==(const TraceSlice&, const TraceSlice&) = default;
};

struct TraceFlow {
  std::uint32_t from_thread = 0, to_thread = 0;
  std::int64_t from_ns = 0, to_ns = 0;  ///< within the slices it joins
  friend bool operator==(const TraceFlow&, const TraceFlow&) = default;
};

/// A counter named "memory" with our classes.
struct TraceMemory {
  std::string process_id;
  std::int64_t time_ns = 0;
  MemoryAmounts amounts;
};

struct TraceEvents {
  std::vector<TraceThread> threads;
  std::vector<std::string> names;
  std::vector<TraceDetail> details;
  std::vector<TraceSlice> slices;  ///< in the order of the file
  std::vector<TraceFlow> flows;    ///< but launches of kernels (ac2g, fwdbwd)
  std::vector<TraceMemory> memory;
  std::optional<std::int64_t> rank, world_size;  ///< distributedInfo
  std::optional<std::string> origin;             ///< "predicted" or "measured": ours say so
  bool has_base_time = false;
  std::int64_t base_time_ns = 0;
  std::size_t dropped = 0;  ///< events that could not be understood
};

/// Largest trace that is taken: memory stays below about 60 bytes an event.
inline constexpr std::size_t kMostTraceEvents = 100'000'000;

/// InputError with the byte where the JSON is unsound; single events that make no sense are counted
/// and dropped, as viewers do. `progress` hears bytes read every 2^20 events or so; it may throw.
TraceEvents read_trace_events(std::string_view text, std::string_view where,
                              const std::function<void(std::size_t bytes)>& progress = {});

}  // namespace meshwright
