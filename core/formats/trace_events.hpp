/// Reads Chrome trace-event JSON as written by profilers, in particular PyTorch's Kineto
/// (github.com/pytorch/kineto, libkineto/src/output_json.cpp), in one pass without building JSON
/// values. A million events take about a second. Format: "Trace Event Format", Google, 2016;
/// everything that Perfetto accepts is accepted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/memory_amounts.hpp"

namespace meshwright {

struct TraceThread {
  std::string process, name;   ///< from metadata events; may be empty
  std::string process_id, id;  ///< as written: numbers or text
  friend bool operator==(const TraceThread&, const TraceThread&) = default;
};

/// Optional arguments of a slice; -1: not given.
struct TraceDetail {
  std::int32_t microbatch = -1, stage = -1;
  std::int32_t collective = -1;                ///< its name, index in TraceEvents::names
  std::int32_t group = -1;                     ///< process group name, index in TraceEvents::names
  std::int64_t sequence = -1;                  ///< sequence number within the process group
  std::int32_t source = -1, destination = -1;  ///< of a message: ranks in the group
  std::int32_t task = -1;  ///< stable name of a Meshwright task, index in TraceEvents::names
  friend bool operator==(const TraceDetail&, const TraceDetail&) = default;
};

struct TraceSlice {
  std::int64_t start_ns = 0;     ///< includes baseTimeNanoseconds
  std::int64_t duration_ns = 0;  ///< ≥ 0
  std::uint32_t thread = 0, name = 0;
  std::int32_t category = -1;  ///< index in names
  std::int32_t detail = -1;    ///< index in details
  friend bool operator==(const TraceSlice&, const TraceSlice&) = default;
};

struct TraceFlow {
  std::uint32_t from_thread = 0, to_thread = 0;
  std::int64_t from_ns = 0, to_ns = 0;  ///< within the slices it connects
  friend bool operator==(const TraceFlow&, const TraceFlow&) = default;
};

/// A sample of Meshwright's "memory" counter.
struct TraceMemory {
  std::string process_id;
  std::int64_t time_ns = 0;
  MemoryAmounts amounts;
};

struct TraceEvents {
  std::vector<TraceThread> threads;
  std::vector<std::string> names;
  std::vector<TraceDetail> details;
  std::vector<TraceSlice> slices;  ///< in file order
  std::vector<TraceFlow> flows;    ///< without kernel launches (ac2g, fwdbwd)
  std::vector<TraceMemory> memory;
  std::optional<std::int64_t> rank, world_size;  ///< distributedInfo
  std::optional<std::string> origin;             ///< "predicted" or "measured", if Meshwright's
  bool has_base_time = false;
  std::int64_t base_time_ns = 0;
  std::size_t dropped = 0;  ///< malformed events
};

/// Maximum number of events; memory stays below about 60 bytes per event.
inline constexpr std::size_t kMostTraceEvents = 100'000'000;

/// Throws InputError with the byte offset of invalid JSON. Malformed events are counted and
/// dropped, as viewers do. `progress` is called with the bytes read every 2^17 events; it may
/// throw.
TraceEvents read_trace_events(std::string_view text, std::string_view where,
                              const std::function<void(std::size_t bytes)>& progress = {});

}  // namespace meshwright
