// One pass over the events, with one function per kind of event.
#include "core/formats/trace_events.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "core/formats/event_file.hpp"

namespace meshwright {
namespace {

std::int32_t small(std::string_view text) {
  const auto value = number_from_text<std::int64_t>(text);
  return value && *value >= 0 && *value <= 0x7fff'ffff ? static_cast<std::int32_t>(*value) : -1;
}

constexpr std::int64_t kLongestSlice = 100'000'000'000'000'000;  ///< ns: three years

/// The fields of one event; names are stored by index, other strings are copied.
struct Event : EventTimes {
  std::int32_t name = -1, category = -1;
  std::string process, thread, id, metadata;  ///< metadata: args.name of an "M" event
  TraceDetail detail;
  bool has_detail = false;
  bool has_memory = false;
  MemoryAmounts memory;

  void clear() {
    phase = 0;
    name = category = -1;
    process.clear(), thread.clear(), id.clear(), metadata.clear();
    start.reset(), duration.reset();
    detail = {};
    has_detail = has_memory = false;
    memory = {};
  }
};

class TraceEventReader {
 public:
  TraceEventReader(std::string_view text, std::string_view where,
                   const std::function<void(std::size_t)>& progress)
      : file_(text, where,
              {.name = "Chrome trace",
               .source = "a profiler, such as PyTorch's",
               .most_events = kMostTraceEvents},
              progress),
        scanner_(file_.scanner) {
    constexpr std::size_t kBytesPerEvent = 190;
    trace_.slices.reserve(std::min(text.size() / kBytesPerEvent, kMostTraceEvents));
  }

  TraceEvents read() {
    file_.read([this] { read_event(); }, [this](std::string_view key) { read_member(key); });
    trace_.dropped += file_.dropped + count_open();
    add_base_time();
    return std::move(trace_);
  }

 private:
  /// Also drops events with implausible times.
  void add_base_time() {
    const auto is_far = [&](std::int64_t& time) {
      time += trace_.base_time_ns;
      return time < -kLatestEventTime || time > kLatestEventTime;
    };
    trace_.dropped +=
        std::erase_if(trace_.slices, [&](TraceSlice& s) { return is_far(s.start_ns); });
    trace_.dropped += std::erase_if(trace_.flows, [&](TraceFlow& f) {
      const bool from_far = is_far(f.from_ns), to_far = is_far(f.to_ns);
      return from_far || to_far;
    });
    trace_.dropped +=
        std::erase_if(trace_.memory, [&](TraceMemory& m) { return is_far(m.time_ns); });
  }

  void read_member(std::string_view key) {
    if (key == "distributedInfo" && scanner_.next() == JsonScanner::Kind::kObject) {
      read_job();
    } else if (key == "otherData" && scanner_.next() == JsonScanner::Kind::kObject) {
      read_origin();
    } else if (key == "baseTimeNanoseconds") {
      if (const auto base = file_.base_time()) {
        trace_.base_time_ns = *base;
        trace_.has_base_time = true;
      }
    } else {
      scanner_.skip();
    }
  }

  std::int32_t read_name() {
    return static_cast<std::int32_t>(index_of_text(number_or_text(), name_index_, trace_.names));
  }
  std::string_view number_or_text() { return file_.number_or_text(); }

  void read_job() {
    for (bool more = scanner_.enter_object(); more; more = scanner_.next_member()) {
      if (scanner_.key() == "rank")
        trace_.rank = file_.integer();
      else if (scanner_.key() == "world_size")
        trace_.world_size = file_.integer();
      else
        scanner_.skip();
    }
  }

  void read_origin() {
    for (bool more = scanner_.enter_object(); more; more = scanner_.next_member()) {
      if (scanner_.key() == "origin" && scanner_.next() == JsonScanner::Kind::kText)
        trace_.origin = std::string(scanner_.text());
      else
        scanner_.skip();
    }
  }

  void read_event() {
    event_.clear();
    scanner_.for_each_member([&](std::string_view key) {
      if (file_.read_times(key, event_)) return;
      if (key == "name") {
        event_.name = read_name();
      } else if (key == "cat") {
        event_.category = read_name();
      } else if (key == "pid") {
        event_.process = number_or_text();
      } else if (key == "tid") {
        event_.thread = number_or_text();
      } else if (key == "id") {
        event_.id = number_or_text();
      } else if (key == "args" && scanner_.next() == JsonScanner::Kind::kObject) {
        read_arguments(event_);
      } else {
        scanner_.skip();
      }
    });
    take(event_);
  }

  void read_arguments(Event& event) {
    TraceDetail& d = event.detail;
    const auto number = [&](std::int32_t& field) {
      field = small(number_or_text());
      event.has_detail = true;
    };
    const auto text = [&](std::int32_t& field) {
      field = read_name();
      event.has_detail = true;
    };
    scanner_.for_each_member([&](std::string_view key) {
      if (key == "mb" || key == "microbatch") {
        number(d.microbatch);
      } else if (key == "stage") {
        number(d.stage);
      } else if (key == "task") {
        text(d.task);
      } else if (key == "Collective name") {
        text(d.collective);
      } else if (key == "Process Group Name") {
        text(d.group);
      } else if (key == "Seq") {
        d.sequence = file_.integer().value_or(-1);
        event.has_detail = true;
      } else if (key == "Src Rank") {
        number(d.source);
      } else if (key == "Dst Rank") {
        number(d.destination);
      } else if (key == "name" && scanner_.next() == JsonScanner::Kind::kText) {
        event.metadata = scanner_.text();
      } else if (scanner_.next() == JsonScanner::Kind::kNumber) {
        add_memory(event, key);
      } else {
        scanner_.skip();
      }
    });
  }

  void add_memory(Event& event, std::string_view key) {
    for (std::size_t c = 0; c < kMemoryClassCount; ++c) {
      if (name_of(static_cast<MemoryClass>(c)) != key) continue;
      const auto bytes = number_from_text<std::int64_t>(scanner_.number());
      event.memory.by_class[c] = Bytes(std::clamp<std::int64_t>(bytes.value_or(0), 0, 1LL << 50));
      event.has_memory = true;
      return;
    }
    scanner_.skip();
  }

  std::uint32_t thread_of(const Event& event) {
    // Consecutive events mostly belong to the same thread.
    if (last_thread_ < trace_.threads.size()) {
      const TraceThread& last = trace_.threads[last_thread_];
      if (last.id == event.thread && last.process_id == event.process) return last_thread_;
    }
    key_ = event.process;
    key_ += '\n';
    key_ += event.thread;
    const auto [at, is_new] =
        thread_index_.try_emplace(key_, static_cast<std::uint32_t>(trace_.threads.size()));
    if (is_new)
      trace_.threads.push_back(
          {.process = {}, .name = {}, .process_id = event.process, .id = event.thread});
    last_thread_ = at->second;
    return last_thread_;
  }

  void take(const Event& event) {
    switch (event.phase) {
      case 'X':
        if (event.start && event.name >= 0 && event.duration.value_or(0) >= 0)
          add_slice(event, *event.start, event.duration.value_or(0));
        else
          ++trace_.dropped;
        return;
      case 'B':
      case 'E':
        take_begin_or_end(event);
        return;
      case 'M':
        take_metadata(event);
        return;
      case 'C':
        if (event.has_memory && event.start)
          trace_.memory.push_back({event.process, *event.start, event.memory});
        return;
      case 's':
      case 't':
      case 'f':
        take_flow(event);
        return;
      case '\0':
        ++trace_.dropped;
        return;
      default:  // instant and asynchronous events are not shown
        return;
    }
  }

  void add_slice(const Event& event, std::int64_t start, std::int64_t duration) {
    if (duration > kLongestSlice) {
      ++trace_.dropped;
      return;
    }
    TraceSlice slice{.start_ns = start,
                     .duration_ns = duration,
                     .thread = thread_of(event),
                     .name = static_cast<std::uint32_t>(event.name),
                     .category = event.category};
    if (event.has_detail) {
      slice.detail = static_cast<std::int32_t>(trace_.details.size());
      trace_.details.push_back(event.detail);
    }
    trace_.slices.push_back(slice);
  }

  void take_begin_or_end(const Event& event) {
    if (!event.start) {
      ++trace_.dropped;
      return;
    }
    std::vector<Event>& stack = open_[thread_of(event)];
    if (event.phase == 'B') {
      stack.push_back(event);
      return;
    }
    if (stack.empty() || *stack.back().start > *event.start || stack.back().name < 0) {
      ++trace_.dropped;
    } else {
      add_slice(stack.back(), *stack.back().start, *event.start - *stack.back().start);
    }
    if (!stack.empty()) stack.pop_back();
  }
  std::size_t count_open() const {
    std::size_t count = 0;
    for (const auto& [thread, stack] : open_) count += stack.size();
    return count;
  }

  void take_metadata(const Event& event) {
    if (event.name < 0) return;
    const std::string& what = trace_.names[static_cast<std::size_t>(event.name)];
    if (what == "thread_name") {
      trace_.threads[thread_of(event)].name = event.metadata;
    } else if (what == "process_name") {
      process_names_[event.process] = event.metadata;
    }
  }

  /// Each step of a flow is connected to the previous step with the same ID.
  void take_flow(const Event& event) {
    if (event.category >= 0) {
      const std::string& category = trace_.names[static_cast<std::size_t>(event.category)];
      if (category == "ac2g" || category == "fwdbwd") return;
    }
    if (!event.start || event.id.empty()) {
      ++trace_.dropped;
      return;
    }
    key_ = fmt::format("{}\n{}\n{}", event.category, event.name, event.id);
    const auto [at, is_new] = flow_at_.try_emplace(key_);
    const std::uint32_t thread = thread_of(event);
    if (event.phase != 's' && !is_new)
      trace_.flows.push_back({.from_thread = at->second.first,
                              .to_thread = thread,
                              .from_ns = at->second.second,
                              .to_ns = *event.start});
    at->second = {thread, *event.start};
    if (event.phase == 'f') flow_at_.erase(at);
  }

 public:
  void name_processes(TraceEvents& trace) const {
    for (TraceThread& thread : trace.threads)
      if (const auto at = process_names_.find(thread.process_id); at != process_names_.end())
        thread.process = at->second;
  }

 private:
  EventFile file_;
  JsonScanner& scanner_;
  Event event_;
  TraceEvents trace_;
  TextIndex name_index_, thread_index_;
  std::uint32_t last_thread_ = 0;
  std::string key_;
  std::unordered_map<std::uint32_t, std::vector<Event>> open_;  ///< by thread
  std::unordered_map<std::string, std::string> process_names_;  ///< by id
  std::unordered_map<std::string, std::pair<std::uint32_t, std::int64_t>> flow_at_;
};

}  // namespace

TraceEvents read_trace_events(std::string_view text, std::string_view where,
                              const std::function<void(std::size_t bytes)>& progress) {
  TraceEventReader reader(text, where, progress);
  TraceEvents trace = reader.read();
  reader.name_processes(trace);
  return trace;
}

}  // namespace meshwright
