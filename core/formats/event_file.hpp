/// What readers of files in Chrome's trace-event format have in common: an array of events, or an
/// object with "traceEvents". Private to core/formats.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/json_scanner.hpp"
#include "core/base/number_from_text.hpp"

namespace meshwright {

/// For lookup only; never iterated.
struct EventTextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>{}(text);
  }
};
using TextIndex = std::unordered_map<std::string, std::uint32_t, EventTextHash, std::equal_to<>>;

/// The index of `text` in `texts`, to which a new text is appended.
std::uint32_t index_of_text(std::string_view text, TextIndex& index,
                            std::vector<std::string>& texts);

// Bounds that keep sums of start, duration and base inside int64.
inline constexpr std::int64_t kLatestBaseTime = 2'500'000'000'000'000'000;   ///< ns
inline constexpr std::int64_t kLatestEventTime = 2'200'000'000'000'000'000;  ///< ns: the year 2039

struct EventTimes {
  char phase = 0;
  std::optional<std::int64_t> start, duration;  ///< ns
};

class EventFile {
 public:
  struct Format {
    std::string_view name;    ///< "Chrome trace"
    std::string_view source;  ///< "a profiler, such as PyTorch's"
    std::size_t most_events = 0;
  };
  EventFile(std::string_view text, std::string_view where, const Format& format,
            const std::function<void(std::size_t)>& progress)
      : scanner(text, where), where_(where), format_(format), progress_(progress) {}

  JsonScanner scanner;
  std::size_t dropped = 0;  ///< events that are not objects

  [[noreturn]] void reject(std::string_view what) const;
  /// A number, or a string; empty for other values.
  std::string_view number_or_text();
  std::optional<std::int64_t> integer();
  /// "baseTimeNanoseconds", if it is plausible.
  std::optional<std::int64_t> base_time();

  /// Reads "ph", "ts" and "dur"; false for other members, whose values are left.
  bool read_times(std::string_view key, EventTimes& event);

  /// Calls read_event() at the start of each event, and member(key), which must consume the value,
  /// for the other members of the file's object.
  template <class ReadEvent, class Member>
  void read(const ReadEvent& read_event, const Member& member) {
    switch (scanner.next()) {
      case JsonScanner::Kind::kArray:
        return read_events(read_event);
      case JsonScanner::Kind::kObject:
        break;
      default:
        reject("expected an object with \"traceEvents\" or an array of events");
    }
    bool has_events = false;
    for (bool more = scanner.enter_object(); more; more = scanner.next_member()) {
      const std::string key(scanner.key());
      if (key != "traceEvents") {
        member(key);
        continue;
      }
      has_events = true;
      read_events(read_event);
    }
    scanner.expect_end();
    if (!has_events) reject("missing \"traceEvents\"");
  }

 private:
  template <class ReadEvent>
  void read_events(const ReadEvent& read_event) {
    std::size_t count = 0;
    dropped += scanner.for_each_object([&] {
      note_event(++count);
      read_event();
    });
  }
  void note_event(std::size_t count) const;
  /// Of a time in microseconds.
  std::optional<std::int64_t> nanoseconds();
  /// "ph": a single character; '\0' for others.
  char phase();

  std::string_view where_;
  Format format_;
  const std::function<void(std::size_t)>& progress_;
};

}  // namespace meshwright
