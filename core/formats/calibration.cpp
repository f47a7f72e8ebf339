#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/base/json_value.hpp"
#include "core/base/value_named.hpp"
#include "core/cost/calibration.hpp"
#include "core/formats/file.hpp"

namespace meshwright {
namespace {

constexpr int kCalibrationSchema = 1;
constexpr double kNanosecondsPerSecond = 1e9;
constexpr double kLongestNs = 1e15;  ///< eleven days

using Json = nlohmann::ordered_json;
using Presence = JsonObjectReader::Presence;

CollectiveKind read_kind(JsonObjectReader& reader) {
  const std::string name = reader.text("kind");
  std::vector<std::string> names;
  for (const CollectiveTraits& traits : kCollectives) {
    if (!traits.is_calibrated) continue;
    if (traits.name == name) return traits.kind;
    names.emplace_back(traits.name);
  }
  reader.note("kind", fmt::format("unknown collective '{}'", name), suggest(name, names));
  return CollectiveKind::kAllReduce;
}

Seconds read_seconds(JsonObjectReader& reader, std::string_view key, double least_ns = 1e-3) {
  return Seconds(reader.number(key, least_ns, kLongestNs) / kNanosecondsPerSecond);
}

double nanoseconds(Seconds time) { return time.value * kNanosecondsPerSecond; }

CurvePoint read_point(JsonObjectReader& reader) {
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;
  CurvePoint point;
  point.bytes = Bytes(reader.integer("bytes", 1, kMostBytes));
  point.time = read_seconds(reader, "time_ns");
  return point;
}

CollectiveCurve read_curve(JsonObjectReader& reader) {
  CollectiveCurve curve;
  curve.kind = read_kind(reader);
  curve.ranks = static_cast<int>(reader.integer("ranks", 2, kMostRanksInFile));
  curve.nodes = static_cast<int>(reader.integer("nodes", 1, kMostRanksInFile));
  curve.groups_per_node =
      static_cast<int>(reader.integer("groups_per_node", 1, kMostRanksInFile, 1));
  curve.source = reader.text("source");
  reader.objects("points", Presence::kRequired, kMostCurvePoints,
                 [&](JsonObjectReader& r) { curve.points.push_back(read_point(r)); });
  return curve;
}

// ---- kernels ----

/// Reads an enumerator with values 0 to count - 1 by its name.
template <class Value>
Value read_name(JsonObjectReader& reader, std::string_view key, int count) {
  const std::string name = reader.text(key);
  if (const auto value = value_named<Value>(name, count)) return *value;
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) names.emplace_back(name_of(static_cast<Value>(i)));
  if (!name.empty())
    reader.note(key, fmt::format("invalid value '{}'", name), suggest(name, names));
  return {};
}

KernelPoint read_kernel_point(JsonObjectReader& reader) {
  constexpr std::int64_t kMostElements = std::int64_t{1} << 60;
  KernelPoint point;
  point.batch = reader.integer("batch", 1, kMostElements, 1);
  point.m = reader.integer("m", 0, kMostElements, 0);
  point.n = reader.integer("n", 0, kMostElements, 0);
  point.k = reader.integer("k", 0, kMostElements, 0);
  point.flops = Flops(reader.number("flop", 0, 1e30));
  point.memory_traffic = Bytes(reader.integer("bytes", 0, kMostElements));
  point.time = read_seconds(reader, "time_ns");
  point.spread = reader.number("spread", 0, 1e6);
  point.samples = static_cast<int>(reader.integer("samples", 1, 1 << 30));
  return point;
}

KernelCurve read_kernel_curve(JsonObjectReader& reader) {
  KernelCurve curve;
  curve.family = {.kind = read_name<KernelKind>(reader, "kind", kKernelKindCount),
                  .routine = read_name<Routine>(reader, "routine", kRoutineCount),
                  .phase = read_name<Phase>(reader, "phase", kPhaseCount),
                  .dtype = read_name<Dtype>(reader, "dtype", kDtypeCount),
                  .causal = reader.boolean("causal", false)};
  reader.objects("points", Presence::kRequired, kMostCurvePoints,
                 [&](JsonObjectReader& r) { curve.points.push_back(read_kernel_point(r)); });
  return curve;
}

Json json_of(const KernelCurve& curve) {
  Json points = Json::array();
  for (const KernelPoint& p : curve.points)
    points.push_back({{"batch", p.batch},
                      {"m", p.m},
                      {"n", p.n},
                      {"k", p.k},
                      {"flop", p.flops.value},
                      {"bytes", p.memory_traffic.value},
                      {"time_ns", nanoseconds(p.time)},
                      {"spread", p.spread},
                      {"samples", p.samples}});
  return {{"kind", name_of(curve.family.kind)},   {"routine", name_of(curve.family.routine)},
          {"phase", name_of(curve.family.phase)}, {"dtype", name_of(curve.family.dtype)},
          {"causal", curve.family.causal},        {"points", std::move(points)}};
}

// ---- the machine ----

MeasuredGpu read_gpu(JsonObjectReader& reader) {
  constexpr double kFastest = 1e18;
  MeasuredGpu gpu;
  gpu.count = static_cast<int>(reader.integer("count", 1, 1 << 16));
  gpu.launch_overhead = read_seconds(reader, "launch_overhead_ns");
  gpu.to_device = BytesPerSecond(reader.number("to_device_bytes_per_second", 1, kFastest));
  gpu.from_device = BytesPerSecond(reader.number("from_device_bytes_per_second", 1, kFastest));
  gpu.memory = BytesPerSecond(reader.number("memory_bytes_per_second", 1, kFastest));
  return gpu;
}

Json json_of(const MeasuredGpu& gpu) {
  return {{"count", gpu.count},
          {"launch_overhead_ns", nanoseconds(gpu.launch_overhead)},
          {"to_device_bytes_per_second", gpu.to_device.value},
          {"from_device_bytes_per_second", gpu.from_device.value},
          {"memory_bytes_per_second", gpu.memory.value}};
}

MeasuredMachine read_machine(JsonObjectReader& reader) {
  constexpr double kFastest = 1e18;
  MeasuredMachine machine;
  machine.processor = reader.text("processor");
  machine.cores = static_cast<int>(reader.integer("cores", 1, 1 << 16));
  machine.memory = Bytes(reader.integer("memory_bytes", 1, std::int64_t{1} << 60));
  machine.message_latency = read_seconds(reader, "message_latency_ns");
  machine.message_bandwidth =
      BytesPerSecond(reader.number("message_bytes_per_second", 1, kFastest));
  machine.memory_bandwidth = BytesPerSecond(reader.number("memory_bytes_per_second", 1, kFastest));
  reader.object("peak_flop_per_second", Presence::kRequired, [&](JsonObjectReader& rates) {
    for (int d = 0; d < kDtypeCount; ++d) {
      const auto dtype = static_cast<Dtype>(d);
      if (rates.optional(name_of(dtype)) != nullptr)
        machine.peak[dtype] = FlopsPerSecond(rates.number(name_of(dtype), 1, kFastest));
    }
  });
  if (reader.optional("noise_ns") != nullptr) machine.noise = read_seconds(reader, "noise_ns", 0);
  reader.object("gpu", Presence::kOptional,
                [&](JsonObjectReader& r) { machine.gpu = read_gpu(r); });
  return machine;
}

Json json_of(const MeasuredMachine& machine) {
  Json peak = Json::object();
  for (const auto& [dtype, rate] : machine.peak) peak[std::string(name_of(dtype))] = rate.value;
  Json json{{"processor", machine.processor},
            {"cores", machine.cores},
            {"memory_bytes", machine.memory.value},
            {"message_latency_ns", nanoseconds(machine.message_latency)},
            {"message_bytes_per_second", machine.message_bandwidth.value},
            {"memory_bytes_per_second", machine.memory_bandwidth.value},
            {"peak_flop_per_second", peak}};
  if (machine.noise.value > 0) json["noise_ns"] = nanoseconds(machine.noise);
  if (machine.gpu) json["gpu"] = json_of(*machine.gpu);
  return json;
}

// ---- the trainer ----

Json json_of(const MeasuredTrainer& trainer) {
  Json json;
  json["steps"] = trainer.steps;
  for (const auto& [key, time] : kTrainerTimes) json[std::string(key)] = nanoseconds(trainer.*time);
  json["slowdown"] = trainer.slowdown;
  return json;
}

MeasuredTrainer read_trainer(JsonObjectReader& reader) {
  MeasuredTrainer trainer;
  trainer.steps = static_cast<int>(reader.integer("steps", 1, 1 << 30));
  for (const auto& [key, time] : kTrainerTimes) trainer.*time = read_seconds(reader, key, 0);
  constexpr double kLeastSlowdown = 1e-3, kMostSlowdown = 1e3;
  trainer.slowdown = reader.number("slowdown", kLeastSlowdown, kMostSlowdown);
  return trainer;
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
      reader.note(
          "provenance",
          fmt::format("expected a string for '{}', got {}", member.key, describe(member.value)),
          "describe the source of the figures");
  }
  return provenance;
}

}  // namespace

std::string to_json(const Calibration& calibration) {
  Json provenance = Json::object();
  for (const auto& [key, value] : calibration.provenance) provenance[key] = value;
  Json curves = Json::array();
  for (const CollectiveCurve& curve : calibration.collectives) {
    Json points = Json::array();
    for (const CurvePoint& point : curve.points)
      points.push_back({{"bytes", point.bytes.value}, {"time_ns", nanoseconds(point.time)}});
    curves.push_back({{"kind", name_of(curve.kind)},
                      {"ranks", curve.ranks},
                      {"nodes", curve.nodes},
                      {"groups_per_node", curve.groups_per_node},
                      {"source", curve.source},
                      {"points", std::move(points)}});
  }
  Json json{{"schema", kCalibrationSchema}, {"provenance", std::move(provenance)}};
  if (calibration.machine) json["machine"] = json_of(*calibration.machine);
  json["collectives"] = std::move(curves);
  if (!calibration.kernels.empty()) {
    json["kernels"] = Json::array();
    for (const KernelCurve& curve : calibration.kernels) json["kernels"].push_back(json_of(curve));
  }
  if (calibration.trainer) json["trainer"] = json_of(*calibration.trainer);
  constexpr int kIndent = 2;
  return json.dump(kIndent, ' ', false, Json::error_handler_t::replace) + "\n";
}

Calibration calibration_from_json(std::string_view text, std::string_view where) {
  const JsonValue json = parse_json(text, where);
  const std::string place = std::string(where) + "#";
  std::vector<Diagnostic> problems;
  JsonObjectReader reader(json, place, problems);
  reader.integer("schema", kCalibrationSchema, kCalibrationSchema);
  Calibration calibration;
  calibration.provenance = read_provenance(reader);
  reader.objects("collectives", Presence::kRequired, kMostCurves,
                 [&](JsonObjectReader& r) { calibration.collectives.push_back(read_curve(r)); });
  reader.object("machine", Presence::kOptional,
                [&](JsonObjectReader& r) { calibration.machine = read_machine(r); });
  reader.objects("kernels", Presence::kOptional, kMostCurves,
                 [&](JsonObjectReader& r) { calibration.kernels.push_back(read_kernel_curve(r)); });
  reader.object("trainer", Presence::kOptional,
                [&](JsonObjectReader& r) { calibration.trainer = read_trainer(r); });
  reader.finish();
  if (problems.empty()) problems = check_calibration(calibration, place);
  throw_if_any(problems);
  return calibration;
}

}  // namespace meshwright
