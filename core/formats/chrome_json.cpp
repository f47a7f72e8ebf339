#include "core/formats/chrome_json.hpp"

#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

/// Viewers sort a thread with tid == pid first, so thread IDs start above any rank.
constexpr std::int64_t kFirstThread = 1'000'000;

std::string_view category_of(const TimelineTrack& track, const TimelineSpan& span) {
  if (const std::optional<Axis> axis = axis_of(track.stream)) return name_of(*axis);
  if (track.stream == Stream::kCompute)
    return span.kind == TaskKind::kOptimizer ? "optimizer" : "compute";
  const bool is_on_host = track.stream == Stream::kToHost || track.stream == Stream::kFromHost ||
                          track.stream == Stream::kHost;
  return is_on_host ? "host" : "p2p";
}

/// Length of the UTF-8 character at the start of `text`; 0 if it is invalid.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const std::size_t length = lead < 0x80                   ? 1
                             : lead >= 0xc2 && lead < 0xe0 ? 2
                             : lead >= 0xe0 && lead < 0xf0 ? 3
                             : lead >= 0xf0 && lead < 0xf5 ? 4
                                                           : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  if (length < 3) return length;
  // Reject overlong encodings, surrogates and values beyond U+10FFFF.
  const bool bad = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) >= 0xa0) ||
                   (lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) >= 0x90);
  return bad ? 0 : length;
}

class ChromeWriter {
 public:
  explicit ChromeWriter(const Timeline& timeline) : timeline_(timeline) {
    constexpr std::size_t kBytesPerSpan = 160, kBytesPerFlow = 200, kBytesPerSample = 240;
    out_.reserve(kBytesPerSpan * timeline.spans.size() + kBytesPerFlow * timeline.flows.size() +
                 kBytesPerSample * timeline.memory.size() + 4096);
  }

  std::string write() {
    out_ += "{\"displayTimeUnit\":\"ns\",\"otherData\":{";
    add("origin", timeline_.origin == TimelineOrigin::kPredicted ? "predicted" : "measured");
    for (const auto& [key, value] : timeline_.provenance) add(key, value);
    out_ += "},\"traceEvents\":[";
    write_names();
    for (const TimelineSpan& span : timeline_.spans) write_span(span);
    for (std::size_t f = 0; f < timeline_.flows.size(); ++f) write_flow(f);
    for (const MemorySample& sample : timeline_.memory) write_memory(sample);
    out_ += "\n]}\n";
    return std::move(out_);
  }

 private:
  void add_key(std::string_view key) {
    if (out_.back() != '{') out_ += ',';
    add_quoted(key);
    out_ += ':';
  }
  void add(std::string_view key, std::int64_t number) {
    add_key(key);
    std::array<char, 24> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    out_.append(digits.data(), end);
  }
  void add(std::string_view key, std::string_view text) {
    add_key(key);
    add_quoted(text);
  }
  /// Replaces bytes that are not UTF-8 by U+FFFD.
  void add_quoted(std::string_view text) {
    constexpr std::string_view kHex = "0123456789abcdef";
    out_ += '"';
    while (!text.empty()) {
      const std::size_t length = utf8_length(text);
      const char c = text[0];
      if (length == 0) {
        out_ += "\xef\xbf\xbd";
      } else if (c == '"' || c == '\\') {
        out_ += '\\';
        out_ += c;
      } else if (static_cast<unsigned char>(c) < 0x20) {
        out_ += "\\u00";
        out_ += kHex[static_cast<unsigned char>(c) >> 4];
        out_ += kHex[c & 15];
      } else {
        out_.append(text.data(), length);
      }
      text.remove_prefix(length == 0 ? 1 : length);
    }
    out_ += '"';
  }

  /// Microseconds with up to three decimals.
  void add_time(std::string_view key, std::int64_t nanoseconds) {
    add(key, nanoseconds / 1000);
    std::int64_t rest = nanoseconds % 1000;
    if (rest == 0) return;
    out_ += '.';
    for (std::int64_t digit = 100; rest > 0; digit /= 10) {
      out_ += static_cast<char>('0' + rest / digit);
      rest %= digit;
    }
  }
  /// Rounds down, which is monotone: spans do not start to overlap, and flows stay on their spans.
  static std::int64_t floor_ns(Ticks time) { return time.value / kTicksPerNanosecond; }

  void begin(std::string_view phase, std::string_view name) {
    out_ += first_ ? "\n{" : ",\n{";
    first_ = false;
    add("ph", phase);
    add("name", name);
  }
  void add_place(std::int32_t rank, std::optional<Stream> stream) {
    add("pid", rank);
    if (stream) add("tid", kFirstThread + static_cast<std::int64_t>(*stream));
  }

  /// `value`: text or a number.
  template <class Value>
  void write_metadata(std::string_view name, std::int32_t rank, std::optional<Stream> stream,
                      std::string_view key, const Value& value) {
    begin("M", name);
    add_place(rank, stream);
    out_ += ",\"args\":{";
    add(key, value);
    out_ += "}}";
  }

  void write_names() {
    std::set<std::int32_t> ranks;
    for (const TimelineTrack& track : timeline_.tracks) ranks.insert(track.rank.value);
    for (const MemorySample& sample : timeline_.memory) ranks.insert(sample.rank);
    for (const std::int32_t rank : ranks) {
      write_metadata("process_name", rank, std::nullopt, "name", "rank " + std::to_string(rank));
      write_metadata("process_sort_index", rank, std::nullopt, "sort_index", rank);
    }
    for (const TimelineTrack& track : timeline_.tracks) {
      write_metadata("thread_name", track.rank.value, track.stream, "name", name_of(track.stream));
      write_metadata("thread_sort_index", track.rank.value, track.stream, "sort_index",
                     static_cast<std::int64_t>(track.stream));
    }
  }

  const TimelineTrack& track_of(const TimelineSpan& span) const {
    return timeline_.tracks[static_cast<std::size_t>(span.track)];
  }

  void write_span(const TimelineSpan& span) {
    const TimelineTrack& track = track_of(span);
    begin("X", name_of(span.kind));
    add("cat", category_of(track, span));
    add_place(track.rank.value, track.stream);
    add_time("ts", floor_ns(span.start));
    add_time("dur", floor_ns(span.end) - floor_ns(span.start));
    out_ += ",\"args\":{";
    add("task", timeline_.names[static_cast<std::size_t>(span.name)]);
    if (span.microbatch >= 0) add("mb", span.microbatch);
    if (span.stage >= 0) add("stage", span.stage);
    out_ += "}}";
  }

  void write_flow_end(std::string_view phase, std::size_t flow, std::int32_t span_index) {
    const TimelineSpan& span = timeline_.spans[static_cast<std::size_t>(span_index)];
    begin(phase, "message");
    add("cat", "flow");
    add("id", static_cast<std::int64_t>(flow) + 1);
    if (phase == "f") add("bp", "e");
    add_place(track_of(span).rank.value, track_of(span).stream);
    add_time("ts", floor_ns(span.start));
    out_ += '}';
  }
  void write_flow(std::size_t flow) {
    write_flow_end("s", flow, timeline_.flows[flow].from);
    write_flow_end("f", flow, timeline_.flows[flow].to);
  }

  void write_memory(const MemorySample& sample) {
    begin("C", "memory");
    add_place(sample.rank, std::nullopt);
    add_time("ts", floor_ns(sample.time));
    out_ += ",\"args\":{";
    for (int c = 0; c < kMemoryClassCount; ++c) {
      const auto memory_class = static_cast<MemoryClass>(c);
      add(name_of(memory_class), sample.amounts[memory_class].value);
    }
    out_ += "}}";
  }

  const Timeline& timeline_;
  std::string out_;
  bool first_ = true;
};

}  // namespace

std::string to_chrome_json(const Timeline& timeline) {
  MW_CHECK(check_timeline(timeline).empty());
  return ChromeWriter(timeline).write();
}

}  // namespace meshwright
