// nccl-tests (NVIDIA/nccl-tests, src/common.cu; text output and -J): times of one collective by
// size. `size` is the larger of send and receive buffer: the whole buffer for all-gather,
// reduce-scatter and all-to-all, as in Collective::bytes. The rows do not contain the number of
// ranks: ranks and hosts are counted from the lines "# Rank …".
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/base/json_value.hpp"
#include "models/import/import_lines.hpp"

namespace meshwright {
namespace {

constexpr int kMostRanks = 1 << 20;
constexpr double kLongestMicroseconds = 1e12;
constexpr double kMicrosecond = 1e-6;

/// "all_reduce_perf" → all-reduce.
std::optional<CollectiveKind> kind_of_test(std::string name) {
  name = lower_case(name);
  if (const std::size_t slash = name.rfind('/'); slash != std::string::npos)
    name = name.substr(slash + 1);
  if (name.ends_with("_perf")) name.resize(name.size() - 5);
  std::replace(name.begin(), name.end(), '-', '_');
  if (name == "all_to_all") name = "alltoall";
  for (const CollectiveTraits& traits : kCollectives)
    if (!name.empty() && traits.nccl_test == name) return traits.kind;
  return std::nullopt;
}

/// The content of one output, text or JSON.
struct Output {
  std::optional<CollectiveKind> kind;
  std::string test;  ///< name in the output
  int ranks = 0;
  std::set<std::string> hosts;
  std::string device;  ///< of the first rank
  std::vector<CurvePoint> points;
};

void add_point(const NamedText& source, int line, std::int64_t bytes, double microseconds,
               Output& output) {
  if (bytes == 0) return;  // the smallest sizes round down to 0 bytes per rank
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;
  if (bytes < 0 || bytes > kMostBytes || !(microseconds > 0) || microseconds > kLongestMicroseconds)
    refuse(
        source, line,
        fmt::format("sizes and times must be positive, got {} bytes in {} us", bytes, microseconds),
        "remove the row or repeat the measurement");
  output.points.push_back({Bytes(bytes), Seconds(microseconds * kMicrosecond)});
}

// ---- text ---------------------------------------------------------------------------------------

class TextReader {
 public:
  explicit TextReader(const NamedText& source) : source_(source) {}

  Output read() {
    for (const TextLine& line : lines_of(source_)) {
      const std::vector<std::string> words = words_of(line.text);
      if (words.empty()) continue;
      if (words.front() == "#")
        read_comment(line, words);
      else if (whole_number(words.front()))
        read_row(line, words);
    }
    if (output_.points.empty())
      refuse(source_, 1, "no rows with sizes and times found",
             "pass the complete output of all_reduce_perf or another program of nccl-tests");
    return std::move(output_);
  }

 private:
  void read_comment(const TextLine& line, const std::vector<std::string>& words) {
    if (words.size() < 2) return;
    if (words.size() > 4 && words[1] == "Collective" && words[3] == "starting:") {
      if (!output_.test.empty())
        refuse(source_, line.number, "more than one test in the file",
               "use a separate file for each test");
      output_.test = words[4];
      output_.kind = kind_of_test(words[4]);
    }
    if (words[1] == "Rank" && words.size() > 2) read_rank(line, words);
    const bool is_header = words[1] == "size" && words.size() > 3;
    if (is_header) read_header(line, words);
  }

  /// "#  Rank  0 Group  0 Pid 1234 on host1 device  0 [0000:18:00] NVIDIA H100 80GB HBM3"
  void read_rank(const TextLine& line, const std::vector<std::string>& words) {
    if (++output_.ranks > kMostRanks)
      refuse(source_, line.number, fmt::format("more than {} ranks", kMostRanks), "");
    const auto on = std::find(words.begin(), words.end(), "on");
    if (on != words.end() && on + 1 != words.end()) output_.hosts.insert(*(on + 1));
    if (!output_.device.empty()) return;
    const std::size_t bracket = line.text.find("] ");
    if (bracket != std::string::npos)
      output_.device = printable_text(line.text.substr(bracket + 2));
  }

  /// Columns are found by name, since options add some. The first time column is the out-of-place
  /// one.
  void read_header(const TextLine& line, const std::vector<std::string>& words) {
    const auto time = std::find_if(words.begin(), words.end(), [](const std::string& word) {
      return word == "time" || word == "cputime";
    });
    if (time == words.end())
      refuse(source_, line.number, "missing column 'time' in the header",
             "pass the output of nccl-tests unchanged");
    time_column_ = time - words.begin() - 1;  // the header's '#' is not a column
  }

  void read_row(const TextLine& line, const std::vector<std::string>& words) {
    if (time_column_ < 0)
      refuse(source_, line.number, "row before the header",
             "pass the complete output of nccl-tests");
    const auto column = static_cast<std::size_t>(time_column_);
    const auto bytes = whole_number(words.front());
    const auto time = column < words.size() ? decimal_number(words[column]) : std::nullopt;
    if (!bytes || !time)
      refuse(source_, line.number,
             fmt::format("expected a time in us in column {} of '{}'", column + 1,
                         printable_text(line.text)),
             "pass the output of nccl-tests unchanged");
    add_point(source_, line.number, *bytes, *time, output_);
  }

  const NamedText& source_;
  Output output_;
  std::ptrdiff_t time_column_ = -1;
};

// ---- JSON ---------------------------------------------------------------------------------------

/// The member `key` of an object. Other keys are not checked: new versions of nccl-tests add some.
const JsonValue* member(const JsonValue& value, std::string_view key) {
  const auto* object = value.as<JsonObject>();
  if (object == nullptr) return nullptr;
  for (const JsonMember& m : *object)
    if (m.key == key) return &m.value;
  return nullptr;
}

[[noreturn]] void refuse_json(const NamedText& source, const std::string& pointer,
                              std::string what) {
  throw InputError({fmt::format("{}#{}", source.where, pointer), std::move(what),
                    "pass the file written by nccl-tests -J"});
}

std::optional<double> json_number(const JsonValue* value) {
  if (value == nullptr) return std::nullopt;
  if (const auto* whole = value->as<std::int64_t>()) return static_cast<double>(*whole);
  if (const auto* real = value->as<double>()) return *real;
  return std::nullopt;
}

const JsonArray& json_array(const NamedText& source, const std::string& pointer,
                            const JsonValue* value) {
  const auto* array = value == nullptr ? nullptr : value->as<JsonArray>();
  if (array == nullptr)
    refuse_json(source, pointer,
                value == nullptr ? "missing array"
                                 : fmt::format("expected an array, got {}", describe(*value)));
  return *array;
}

void read_devices(const NamedText& source, const JsonValue& document, Output& output) {
  const JsonValue* config = member(document, "config");
  if (config == nullptr) refuse_json(source, "/config", "missing object");
  for (const JsonValue& device :
       json_array(source, "/config/devices", member(*config, "devices"))) {
    ++output.ranks;
    if (const JsonValue* host = member(device, "hostname"))
      if (const auto* name = host->as<std::string>()) output.hosts.insert(*name);
    if (const JsonValue* info = member(device, "device_info"); info && output.device.empty())
      if (const auto* name = info->as<std::string>()) output.device = printable_text(*name);
  }
}

Output read_json(const NamedText& source) {
  const JsonValue document = parse_json(source.text, source.where);
  Output output;
  read_devices(source, document, output);
  for (const char* key : {"test", "collective", "collective_test"})
    if (const JsonValue* test = member(document, key))
      if (const auto* name = test->as<std::string>()) {
        output.test = *name;
        output.kind = kind_of_test(*name);
      }
  const JsonArray& results = json_array(source, "/results", member(document, "results"));
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string pointer = fmt::format("/results/{}", i);
    const auto size = json_number(member(results[i], "size"));
    const JsonValue* half = member(results[i], "out_of_place");
    if (half == nullptr || half->is_null()) half = member(results[i], "in_place");
    if (!size || half == nullptr) refuse_json(source, pointer, "missing size or times");
    auto time = json_number(member(*half, "time"));
    if (!time) time = json_number(member(*half, "cpu_time"));
    if (!time || *size > 1e18) refuse_json(source, pointer, "missing time");
    add_point(source, 1, static_cast<std::int64_t>(*size), *time, output);
  }
  if (output.points.empty()) refuse_json(source, "/results", "empty array");
  return output;
}

// ---- to a calibration ---------------------------------------------------------------------------

CollectiveCurve curve_of(const NamedText& source, const Output& output, CollectiveKind kind,
                         std::vector<std::string>& notes) {
  const auto nodes = static_cast<int>(std::max<std::size_t>(1, output.hosts.size()));
  if (output.ranks < 2)
    throw InputError({source.where, fmt::format("expected at least 2 ranks, got {}", output.ranks),
                      "pass the complete output, with its '# Rank …' lines"});
  if (output.ranks % nodes != 0)
    throw InputError({source.where,
                      fmt::format("{} ranks are not a multiple of {} hosts", output.ranks, nodes),
                      "run with the same number of ranks on every host"});
  LevelledPoints levelled = level_points(output.points);
  if (levelled.points.size() > kMostCurvePoints)
    throw InputError(
        {source.where,
         fmt::format("{} sizes: expected at most {}", levelled.points.size(), kMostCurvePoints),
         "remove some sizes"});
  if (levelled.moved > 0)
    notes.push_back(
        fmt::format("leveled {} of {} times that decreased with size, by up to {:.1f} %",
                    levelled.moved, levelled.points.size(), 100 * levelled.furthest));
  return {.kind = kind,
          .ranks = output.ranks,
          .nodes = nodes,
          .groups_per_node = 1,
          .points = std::move(levelled.points),
          .source = fmt::format("nccl-tests, {}, {} ranks of {}", source.where, output.ranks,
                                output.device.empty() ? "an unnamed device" : output.device)};
}

bool is_json(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{';
}

}  // namespace

ImportedCalibration import_nccl_tests(const NamedText& text, std::optional<CollectiveKind> kind) {
  const Output output = is_json(text.text) ? read_json(text) : TextReader(text).read();
  const std::optional<CollectiveKind> which = kind ? kind : output.kind;
  if (!which)
    throw InputError({text.where,
                      output.test.empty()
                          ? "the output does not name its collective"
                          : fmt::format("unsupported collective '{}'", printable_text(output.test)),
                      "give the collective, for example --collective all-reduce"});
  ImportedCalibration result;
  result.calibration.collectives.push_back(curve_of(text, output, *which, result.notes));
  result.calibration.provenance["measured by"] = fmt::format("nccl-tests, {}", text.where);
  if (!output.device.empty()) result.calibration.provenance["device"] = output.device;
  for (const std::string& note : result.notes) result.calibration.provenance["note"] = note;
  return result;
}

bool is_nccl_tests(std::string_view head) {
  if (is_nccl_topology(head)) return false;
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string_view::npos && head[first] == '{';
  return (is_json && contains(head, "\"results\"")) || contains(head, "nccl-tests") ||
         contains(head, "busbw");
}

}  // namespace meshwright
