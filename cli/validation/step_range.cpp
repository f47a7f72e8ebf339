#include "cli/validation/step_range.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "core/base/json_value.hpp"
#include "core/base/parse_quantity.hpp"
#include "core/formats/file.hpp"
#include "core/plan/strategy_text.hpp"

namespace meshwright {
namespace {

constexpr std::size_t kLargestRangeFile = std::size_t{1} << 20;
constexpr std::int64_t kLongestStepNanoseconds = 1'000'000'000'000'000;  ///< 11 days

Ticks read_step_time(JsonObjectReader& reader, std::string_view key) {
  return Ticks(kTicksPerNanosecond * reader.integer(key, 0, kLongestStepNanoseconds));
}

}  // namespace

StepRange step_range_of(const std::string& model, const PlanFigures& figures,
                        std::optional<double> tolerance) {
  StepRange range{.model = model,
                  .strategy = strategy_text(figures.strategy),
                  .predicted = figures.step_time,
                  .lowest = {},
                  .highest = {},
                  .source = {}};
  if (tolerance) {
    const Seconds predicted = to_seconds(figures.step_time);
    range.lowest = to_ticks(predicted * std::max(0.0, 1 - *tolerance));
    range.highest = to_ticks(predicted * (1 + *tolerance));
    range.source = fmt::format("predicted step time -{0:.1f} % to +{0:.1f} %", 100 * *tolerance);
  } else if (figures.range) {
    range.lowest = figures.range->p10;
    range.highest = figures.range->p90;
    range.source =
        fmt::format("p10 to p90 of {} similar published runs", figures.range->validated_runs);
  } else {
    throw InputError({.where = "--write-watch",
                      .what = "the prediction is unvalidated and has no range",
                      .hint = "set the allowed deviation, such as --tolerance 10%"});
  }
  return range;
}

std::string to_json(const StepRange& range) {
  const nlohmann::ordered_json json{{"schema", 1},
                                    {"model", range.model},
                                    {"strategy", range.strategy},
                                    {"step_time",
                                     {{"predicted_ns", to_nanoseconds(range.predicted)},
                                      {"lowest_ns", to_nanoseconds(range.lowest)},
                                      {"highest_ns", to_nanoseconds(range.highest)}}},
                                    {"source", range.source}};
  constexpr int kIndent = 2;
  return json.dump(kIndent, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

StepRange step_range_from_json(std::string_view text, std::string_view where) {
  const JsonValue root = parse_json(text, where);
  std::vector<Diagnostic> problems;
  JsonObjectReader reader(root, std::string(where), problems);
  reader.integer("schema", 1, 1);
  StepRange range;
  range.model = reader.text("model");
  range.strategy = reader.text("strategy");
  reader.object("step_time", JsonObjectReader::Presence::kRequired, [&](JsonObjectReader& r) {
    range.predicted = read_step_time(r, "predicted_ns");
    range.lowest = read_step_time(r, "lowest_ns");
    range.highest = read_step_time(r, "highest_ns");
    if (range.lowest > range.highest)
      r.note("lowest_ns",
             fmt::format("must be at most highest_ns, {}", to_nanoseconds(range.highest)),
             "swap the two limits");
  });
  range.source = reader.text("source");
  reader.finish();
  throw_if_any(problems);
  return range;
}

StepRange read_step_range(const std::string& file) {
  return step_range_from_json(read_file(file, kLargestRangeFile),
                              file == "-" ? "standard input" : file);
}

std::string outside_range_text(const StepRange& range, Ticks measured, std::string_view file) {
  if (measured >= range.lowest && measured <= range.highest) return "";
  return fmt::format("step time {} is {} the predicted range of {} to {} in {}\n",
                     to_text(measured), measured < range.lowest ? "below" : "above",
                     to_text(range.lowest), to_text(range.highest), file);
}

void check_range_belongs_to(const StepRange& range, std::string_view model,
                            std::string_view strategy, std::string_view file) {
  for (const auto& [what, expected, actual] :
       {std::tuple("model", std::string_view(range.model), model),
        std::tuple("strategy", std::string_view(range.strategy), strategy)})
    if (expected != actual)
      throw InputError(
          {.where = std::string(file),
           .what = fmt::format("is for the {} '{}', but '{}' was measured", what, expected, actual),
           .hint = "write a range for this plan with simulate --write-watch"});
}

}  // namespace meshwright
