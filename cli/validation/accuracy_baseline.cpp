#include "cli/validation/accuracy_baseline.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/json_value.hpp"

namespace meshwright {

AccuracyBaseline accuracy_of(std::span<const ComparedRun> runs) {
  std::map<std::string, std::vector<ComparedRun>> sets;
  for (const ComparedRun& entry : runs) sets[entry.set->name].push_back(entry);
  AccuracyBaseline baseline;
  for (const auto& [name, group] : sets) {
    const ErrorSummary times = summarize_times(group);
    const ErrorSummary memory = summarize_memory(group).errors;
    baseline[name] = {.runs = times.count,
                      .memory_runs = memory.count,
                      .time_error = times.mean,
                      .memory_error = memory.mean};
  }
  return baseline;
}

std::string to_json(const AccuracyBaseline& baseline) {
  constexpr double kDigits = 1e5;  // a thousandth of a percent
  const auto rounded = [](double value) { return std::round(value * kDigits) / kDigits; };
  nlohmann::ordered_json sets = nlohmann::ordered_json::object();
  for (const auto& [name, accuracy] : baseline)
    sets[name] = {{"runs", accuracy.runs},
                  {"time_error", rounded(accuracy.time_error)},
                  {"memory_runs", accuracy.memory_runs},
                  {"memory_error", rounded(accuracy.memory_error)}};
  constexpr int kIndent = 2;
  return nlohmann::ordered_json{{"schema", 1}, {"sets", std::move(sets)}}.dump(kIndent) + "\n";
}

AccuracyBaseline accuracy_baseline_from_json(std::string_view text, std::string_view where) {
  constexpr std::int64_t kMostRunsOfSet = 1'000'000;
  constexpr double kLargestMean = 1e6;
  const JsonValue root = parse_json(text, where);
  std::vector<Diagnostic> problems;
  JsonObjectReader reader(root, std::string(where), problems);
  reader.integer("schema", 1, 1);
  AccuracyBaseline baseline;
  if (const JsonValue* sets = reader.required("sets")) {
    const auto* object = sets->as<JsonObject>();
    if (object == nullptr)
      reader.note("sets", fmt::format("expected an object, got {}", describe(*sets)), "");
    for (std::size_t i = 0; object != nullptr && i < object->size(); ++i) {
      const JsonMember& set = (*object)[i];
      JsonObjectReader entry(set.value, reader.place_of("sets") + "/" + set.key, problems);
      SetAccuracy& accuracy = baseline[set.key];
      accuracy.runs = static_cast<std::size_t>(entry.integer("runs", 0, kMostRunsOfSet));
      accuracy.time_error = entry.number("time_error", 0, kLargestMean);
      accuracy.memory_runs =
          static_cast<std::size_t>(entry.integer("memory_runs", 0, kMostRunsOfSet));
      accuracy.memory_error = entry.number("memory_error", 0, kLargestMean);
      entry.finish();
    }
  }
  reader.finish();
  throw_if_any(problems);
  return baseline;
}

std::vector<std::string> worse_sets(const AccuracyBaseline& now, const AccuracyBaseline& baseline) {
  std::vector<std::string> worse;
  const auto check = [&worse](const std::string& name, const char* what, double error,
                              double before, std::size_t count, std::size_t count_before) {
    if (count < count_before)
      worse.push_back(
          fmt::format("{}: {} of {} runs, before of {}", name, what, count, count_before));
    else if (error > before + kLargestIncrease)
      worse.push_back(fmt::format("{}: mean error of the {} {:.1f} %, before {:.1f} %", name, what,
                                  100 * error, 100 * before));
  };
  for (const auto& [name, accuracy] : now) {
    const auto before = baseline.find(name);
    if (before == baseline.end()) continue;
    check(name, "step time", accuracy.time_error, before->second.time_error, accuracy.runs,
          before->second.runs);
    check(name, "memory", accuracy.memory_error, before->second.memory_error, accuracy.memory_runs,
          before->second.memory_runs);
  }
  return worse;
}

}  // namespace meshwright
