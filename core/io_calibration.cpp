#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "core/calibration.hpp"
#include "core/json_value.hpp"

namespace meshwright {
namespace {

constexpr int kSchema = 1;
constexpr double kNanosecondsPerSecond = 1e9;
constexpr double kLongestNs = 1e15;  ///< eleven days
constexpr std::int64_t kMostRanks = 1 << 24;

constexpr std::array kKinds = {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                               CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll,
                               CollectiveKind::kBroadcast};

CollectiveKind read_kind(JsonObjectReader& reader) {
  const std::string name = reader.text("kind");
  std::vector<std::string> names;
  for (const CollectiveKind kind : kKinds) {
    if (name_of(kind) == name) return kind;
    names.emplace_back(name_of(kind));
  }
  reader.note("kind", fmt::format("unknown collective '{}'", name), suggest(name, names));
  return CollectiveKind::kAllReduce;
}

/// The array at `key`, or an empty one with a problem noted.
const JsonArray& read_array(JsonObjectReader& reader, std::string_view key, std::size_t longest) {
  static const JsonArray kNothing;
  const JsonValue* value = reader.required(key);
  if (value == nullptr) return kNothing;
  const auto* array = value->as<JsonArray>();
  if (array == nullptr) {
    reader.note(key, fmt::format("expected an array, got {}", describe(*value)), "");
    return kNothing;
  }
  if (array->size() <= longest) return *array;
  reader.note(key, fmt::format("{} entries", array->size()), fmt::format("at most {}", longest));
  return kNothing;
}

CurvePoint read_point(const JsonValue& value, const std::string& place,
                      std::vector<Diagnostic>& problems) {
  JsonObjectReader reader(value, place, problems);
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;
  CurvePoint point;
  point.bytes = Bytes(reader.integer("bytes", 1, kMostBytes));
  point.time = Seconds(reader.number("time_ns", 1e-3, kLongestNs) / kNanosecondsPerSecond);
  reader.finish();
  return point;
}

CollectiveCurve read_curve(const JsonValue& value, const std::string& place,
                           std::vector<Diagnostic>& problems) {
  JsonObjectReader reader(value, place, problems);
  CollectiveCurve curve;
  curve.kind = read_kind(reader);
  curve.ranks = static_cast<int>(reader.integer("ranks", 2, kMostRanks));
  curve.nodes = static_cast<int>(reader.integer("nodes", 1, kMostRanks));
  curve.groups_per_node = static_cast<int>(reader.integer("groups_per_node", 1, kMostRanks, 1));
  curve.source = reader.text("source");
  const JsonArray& points = read_array(reader, "points", kMostCurvePoints);
  for (std::size_t i = 0; i < points.size(); ++i)
    curve.points.push_back(read_point(points[i], fmt::format("{}/points/{}", place, i), problems));
  reader.finish();
  return curve;
}

std::map<std::string, std::string> read_provenance(JsonObjectReader& reader) {
  std::map<std::string, std::string> provenance;
  const JsonValue* value = reader.required("provenance");
  if (value == nullptr) return provenance;
  const auto* object = value->as<JsonObject>();
  if (object == nullptr) {
    reader.note("provenance", fmt::format("expected an object, got {}", describe(*value)), "");
    return provenance;
  }
  for (const JsonMember& member : *object) {
    const auto* text = member.value.as<std::string>();
    if (text != nullptr)
      provenance[member.key] = *text;
    else
      reader.note("provenance", fmt::format("'{}' is {}", member.key, describe(member.value)),
                  "say in words where the figures are from");
  }
  return provenance;
}

}  // namespace

std::string to_json(const Calibration& calibration) {
  using Json = nlohmann::ordered_json;
  Json provenance = Json::object();
  for (const auto& [key, value] : calibration.provenance) provenance[key] = value;
  Json curves = Json::array();
  for (const CollectiveCurve& curve : calibration.collectives) {
    Json points = Json::array();
    for (const CurvePoint& point : curve.points)
      points.push_back(
          {{"bytes", point.bytes.value}, {"time_ns", point.time.value * kNanosecondsPerSecond}});
    curves.push_back({{"kind", name_of(curve.kind)},
                      {"ranks", curve.ranks},
                      {"nodes", curve.nodes},
                      {"groups_per_node", curve.groups_per_node},
                      {"source", curve.source},
                      {"points", std::move(points)}});
  }
  const Json json{{"schema", kSchema},
                  {"provenance", std::move(provenance)},
                  {"collectives", std::move(curves)}};
  constexpr int kIndent = 2;
  return json.dump(kIndent, ' ', false, Json::error_handler_t::replace) + "\n";
}

Calibration calibration_from_json(std::string_view text, std::string_view where) {
  const JsonValue json = parse_json(text, where);
  const std::string place = std::string(where) + "#";
  std::vector<Diagnostic> problems;
  JsonObjectReader reader(json, place, problems);
  reader.integer("schema", kSchema, kSchema);
  Calibration calibration;
  calibration.provenance = read_provenance(reader);
  const JsonArray& curves = read_array(reader, "collectives", kMostCurves);
  for (std::size_t i = 0; i < curves.size(); ++i)
    calibration.collectives.push_back(
        read_curve(curves[i], fmt::format("{}/collectives/{}", place, i), problems));
  reader.finish();
  if (problems.empty()) problems = check_calibration(calibration, place);
  if (!problems.empty()) throw InputError(std::move(problems));
  return calibration;
}

}  // namespace meshwright
