#include "cli/validation/validation_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "cli/reports/report.hpp"
#include "cli/terminal/table.hpp"
#include "core/base/parse_quantity.hpp"

namespace meshwright {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kJsonIndent = 2;

// ---- groups -------------------------------------------------------------------------------------

using Runs = std::vector<ComparedRun>;
using KeyOfRun = std::function<std::string(const ComparedRun&)>;

const std::string& device_key(const ComparedRun& entry) { return entry.prediction->device_name; }
const std::string& set_key(const ComparedRun& entry) { return entry.set->name; }
const std::string& trainer_key(const ComparedRun& entry) { return entry.run->trainer; }

std::map<std::string, Runs> grouped_runs(std::span<const ComparedRun> runs, const KeyOfRun& key) {
  std::map<std::string, Runs> groups;
  for (const ComparedRun& entry : runs) groups[key(entry)].push_back(entry);
  return groups;
}

/// "memory_kind" does not change a prediction.
bool has_assumed_options(const PublishedRun& run) {
  return std::any_of(run.assumed.begin(), run.assumed.end(),
                     [](const std::string& key) { return key != "memory_kind"; });
}

// ---- tables -------------------------------------------------------------------------------------

std::string percent_points(double fraction) { return fmt::format("{:.1f}", 100 * fraction); }
std::string signed_percent(double fraction) { return fmt::format("{:+.1f}", 100 * fraction); }

Document styled(Table table, TableStyle style) {
  return style == TableStyle::kMarkdown ? to_markdown(table) : Document(std::move(table));
}

std::vector<std::string> time_row(const std::string& name, std::span<const ComparedRun> runs) {
  const ErrorSummary s = summarize_times(runs);
  const bool assumed = std::any_of(runs.begin(), runs.end(), [](const ComparedRun& entry) {
    return has_assumed_options(*entry.run);
  });
  return {(assumed ? "~" : "") + name,
          std::to_string(s.count),
          percent_points(s.mean),
          percent_points(s.median),
          signed_percent(s.worst),
          signed_percent(s.bias),
          s.spearman ? fmt::format("{:.2f}", *s.spearman) : "-",
          s.mean_regret ? fmt::format("{} / {}", percent_points(*s.mean_regret),
                                      percent_points(*s.worst_regret))
                        : "-"};
}

Table time_table(std::string_view title, std::span<const ComparedRun> runs, const KeyOfRun& key,
                 bool with_total) {
  Table table = empty_table(left_aligned(std::string(title)), "runs", "mean %", "median", "worst",
                            "bias", "Spearman", "regret %");
  for (const auto& [name, group] : grouped_runs(runs, key))
    if (summarize_times(group).count > 0) table.rows.push_back(time_row(name, group));
  if (with_total && summarize_times(runs).count > 0) table.rows.push_back(time_row("all", runs));
  return table;
}

std::vector<std::string> memory_row(const std::string& name, const MemorySummary& s) {
  const bool has_errors = s.errors.count > 0;
  return {name,
          std::to_string(s.errors.count),
          has_errors ? percent_points(s.errors.mean) : "-",
          has_errors ? percent_points(s.errors.median) : "-",
          has_errors ? signed_percent(s.errors.worst) : "-",
          has_errors ? signed_percent(s.errors.bias) : "-",
          fmt::format("{} of {}", s.predicted_out_of_memory, s.out_of_memory),
          fmt::format("{} of {}", s.wrongly_out_of_memory, s.ran)};
}

Table memory_error_table(std::span<const ComparedRun> runs) {
  Table table = empty_table(left_aligned("peak memory"), "runs", "mean %", "median", "worst",
                            "bias", "out of memory", "wrongly");
  for (const auto& [name, group] : grouped_runs(runs, set_key)) {
    const MemorySummary s = summarize_memory(group);
    if (s.errors.count + s.out_of_memory + s.wrongly_out_of_memory > 0)
      table.rows.push_back(memory_row(name, s));
  }
  table.rows.push_back(memory_row("all", summarize_memory(runs)));
  return table;
}

// ---- single runs --------------------------------------------------------------------------------

struct Component {
  std::string name;
  double share;
};

/// The parts of the step, as in `simulate`.
std::vector<Component> components_of(const StepShares& shares) {
  std::vector<Component> components;
  for (std::size_t i = 0; i < shares.compute.size(); ++i)
    components.push_back({std::string(name_of(static_cast<KernelKind>(i))), shares.compute[i]});
  components.push_back({"recomputation", shares.recompute});
  components.push_back({"optimizer", shares.optimizer});
  components.push_back({"launches", shares.launch});
  for (std::size_t i = 0; i < shares.exposed_communication.size(); ++i)
    components.push_back({fmt::format("exposed {}", name_of(static_cast<Axis>(i))),
                          shares.exposed_communication[i]});
  double bubble = 0;
  for (const double share : shares.bubble) bubble += share;
  components.push_back({"bubble", bubble});
  return components;
}

std::string run_name(const ComparedRun& entry) {
  return fmt::format("{}#{}", entry.set->name, entry.run->id);
}

/// "GEMM 48 %, attention 20 %, exposed tp 11 %; not stated: recompute"
std::string likely_cause(const ComparedRun& entry) {
  constexpr std::size_t kShown = 3;
  std::vector<Component> components = components_of(entry.prediction->shares);
  std::stable_sort(components.begin(), components.end(),
                   [](const Component& a, const Component& b) { return a.share > b.share; });
  std::string text;
  for (std::size_t i = 0; i < kShown; ++i)
    text += fmt::format("{}{} {:.0f} %", i == 0 ? "" : ", ", components[i].name,
                        100 * components[i].share);
  std::string unstated;
  for (const std::string& key : entry.run->assumed)
    if (key != "memory_kind") unstated += (unstated.empty() ? "" : ", ") + key;
  return unstated.empty() ? text : fmt::format("{}; not stated: {}", text, unstated);
}

std::vector<std::string> run_row(const ComparedRun& entry) {
  const PublishedRun& run = *entry.run;
  const bool simulated = entry.prediction->problems.empty();
  const auto time = [](const std::optional<Seconds>& seconds) {
    return seconds ? to_text(*seconds) : "-";
  };
  const auto error = [](const std::optional<double>& e) { return e ? signed_percent(*e) : "-"; };
  return {run_name(entry),
          entry.set->models[run.model].name,
          std::to_string(rank_count(run.strategy.degrees)),
          time(run.step_time),
          simulated ? to_text(entry.prediction->step_time) : "-",
          error(entry.time_error),
          run.ran_out_of_memory ? "out"
          : run.memory          ? to_text(*run.memory)
                                : "-",
          simulated ? to_text(memory_of(*entry.prediction, run.memory_kind)) : "-",
          error(entry.memory_error)};
}

Table run_table(std::span<const ComparedRun> runs) {
  Table table = empty_table(left_aligned("run"), left_aligned("model"), "GPUs", "measured",
                            "predicted", "error %", "memory", "predicted", "error %");
  for (const ComparedRun& entry : runs) table.rows.push_back(run_row(entry));
  return table;
}

/// The runs with the largest errors of the step time, worst first.
Runs largest_misses(std::span<const ComparedRun> runs) {
  constexpr std::size_t kShown = 10;
  Runs misses;
  for (const ComparedRun& entry : runs)
    if (entry.time_error) misses.push_back(entry);
  std::stable_sort(misses.begin(), misses.end(), [](const ComparedRun& a, const ComparedRun& b) {
    return std::abs(*a.time_error) > std::abs(*b.time_error);
  });
  if (misses.size() > kShown) misses.resize(kShown);
  return misses;
}

Document misses_text(std::span<const ComparedRun> runs) {
  Table table =
      empty_table(left_aligned("largest misses"), left_aligned("model"), "GPUs", "measured",
                  "predicted", "error %", left_aligned("largest parts of the predicted step"));
  for (const ComparedRun& entry : largest_misses(runs)) {
    std::vector<std::string> row = run_row(entry);
    row.resize(6);
    row.push_back(likely_cause(entry));
    table.rows.push_back(std::move(row));
  }
  return table.rows.empty() ? Document() : Document("\n") + std::move(table);
}

std::string traps_text(std::span<const ComparedRun> runs) {
  std::string text;
  for (const ComparedRun& entry : runs) {
    if (entry.run->trap.empty()) continue;
    std::string error;
    if (entry.prediction->problems.empty() && entry.run->step_time)
      error = fmt::format(
          " ({} %)",
          signed_percent(entry.prediction->step_time.value / entry.run->step_time->value - 1));
    text += fmt::format("  {}{}: {}\n", run_name(entry), error, entry.run->trap);
  }
  return text.empty() ? "" : "\nNot in the totals (traps):\n" + text;
}

/// Reasons with the number of runs and the first of them.
std::string refusals_text(std::span<const ComparedRun> runs) {
  std::map<std::string, Runs> by_reason;
  for (const ComparedRun& entry : runs)
    if (!entry.prediction->problems.empty()) {
      const std::string& what = entry.prediction->problems.front().what;
      by_reason[what.substr(what.find(", ") == std::string::npos ? 0 : what.find(", ") + 2)]
          .push_back(entry);
    }
  std::string text;
  for (const auto& [reason, group] : by_reason)
    text +=
        fmt::format("  {}{}: {}\n", run_name(group.front()),
                    group.size() == 1 ? "" : fmt::format(" and {} more", group.size() - 1), reason);
  return text.empty() ? "" : "\nCannot be simulated:\n" + text;
}

// ---- JSON ---------------------------------------------------------------------------------------

Json optional_json(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json summary_json(const ErrorSummary& s) {
  return {{"runs", s.count},
          {"mean", s.mean},
          {"median", s.median},
          {"worst", s.worst},
          {"bias", s.bias},
          {"spearman", optional_json(s.spearman)},
          {"mean_regret", optional_json(s.mean_regret)},
          {"worst_regret", optional_json(s.worst_regret)}};
}

Json group_json(std::span<const ComparedRun> runs) {
  const MemorySummary m = summarize_memory(runs);
  return {{"step_time", summary_json(summarize_times(runs))},
          {"memory",
           {{"runs", m.errors.count},
            {"mean", m.errors.mean},
            {"median", m.errors.median},
            {"worst", m.errors.worst},
            {"bias", m.errors.bias},
            {"out_of_memory", m.out_of_memory},
            {"predicted_out_of_memory", m.predicted_out_of_memory},
            {"ran", m.ran},
            {"wrongly_out_of_memory", m.wrongly_out_of_memory}}}};
}

Json groups_json(std::span<const ComparedRun> runs, const KeyOfRun& key) {
  Json groups = Json::object();
  for (const auto& [name, group] : grouped_runs(runs, key)) groups[name] = group_json(group);
  return groups;
}

Json run_json(const ComparedRun& entry) {
  const PublishedRun& run = *entry.run;
  const RunPrediction& p = *entry.prediction;
  Json json{{"id", run.id},           {"set", entry.set->name},
            {"job", entry.job},       {"device", p.device_name},
            {"trainer", run.trainer}, {"strategy", Json::parse(to_json(run.strategy))},
            {"assumed", run.assumed}, {"trap", run.trap.empty() ? Json() : Json(run.trap)}};
  json["measured"] = {{"step_time_s", run.step_time ? Json(run.step_time->value) : Json()},
                      {"memory_bytes", run.memory ? Json(run.memory->value) : Json()},
                      {"memory_kind", name_of(run.memory_kind)},
                      {"out_of_memory", run.ran_out_of_memory}};
  json["predicted"] = Json();
  if (p.problems.empty()) {
    Json shares = Json::object();
    for (const Component& c : components_of(p.shares)) shares[c.name] = c.share;
    json["predicted"] = {
        {"step_time_s", p.step_time.value},   {"allocated_bytes", p.allocated.value},
        {"reserved_bytes", p.reserved.value}, {"device_bytes", p.device.value},
        {"fits_in_memory", p.fits_in_memory}, {"mfu", p.mfu},
        {"shares", std::move(shares)}};
  }
  json["time_error"] = optional_json(entry.time_error);
  json["memory_error"] = optional_json(entry.memory_error);
  json["problems"] = Json::parse(problems_json(p.problems));
  return json;
}

/// With quotes if the text contains a separator.
std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string cell = "\"";
  for (const char c : text) cell += c == '"' ? std::string("\"\"") : std::string(1, c);
  return cell + "\"";
}

}  // namespace

Document validation_text(std::span<const ComparedRun> runs,
                         const ValidationReportOptions& options) {
  Document text;
  if (options.rows) text += styled(run_table(runs), options.style) + "\n";
  text += styled(time_table("set", runs, set_key, true), options.style) + "\n";
  text += styled(time_table("device", runs, device_key, false), options.style) + "\n";
  text += styled(time_table("trainer", runs, trainer_key, false), options.style) + "\n";
  text += styled(memory_error_table(runs), options.style);
  if (options.style == TableStyle::kMarkdown) return text;
  text +=
      "\nError of a run: predicted / measured - 1. ~: the source does not state all options.\n"
      "Spearman: rank correlation inside jobs of 5 or more runs. Regret: slowdown of the run\n"
      "predicted to be the fastest of its job, mean / worst. Out of memory: predicted of "
      "measured;\n"
      "wrongly: predicted, of the runs that finished.\n";
  return std::move(text) + misses_text(runs) + traps_text(runs) + refusals_text(runs);
}

std::string validation_json(std::span<const ComparedRun> runs) {
  Json json{{"schema", 1}, {"all", group_json(runs)}};
  json["sets"] = groups_json(runs, set_key);
  json["devices"] = groups_json(runs, device_key);
  json["trainers"] = groups_json(runs, trainer_key);
  json["runs"] = Json::array();
  for (const ComparedRun& entry : runs) json["runs"].push_back(run_json(entry));
  return json.dump(kJsonIndent, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string validation_csv(std::span<const ComparedRun> runs) {
  std::string text =
      "set,id,job,model,device,trainer,gpus,strategy,assumed,trap,measured_s,predicted_s,"
      "time_error,memory_kind,measured_bytes,predicted_bytes,memory_error,out_of_memory,fits,mfu";
  for (const Component& c : components_of({})) text += "," + c.name;
  text += ",problem\n";
  const auto fraction = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.6f}", *value) : "";
  };
  for (const ComparedRun& entry : runs) {
    const PublishedRun& run = *entry.run;
    const RunPrediction& p = *entry.prediction;
    const bool simulated = p.problems.empty();
    const std::string memory_bytes = run.memory ? std::to_string(run.memory->value) : "";
    text +=
        fmt::format("{},{},{},{},{},{},{},{},{},{},", csv_cell(entry.set->name), csv_cell(run.id),
                    csv_cell(entry.job), csv_cell(entry.set->models[run.model].name),
                    csv_cell(p.device_name), csv_cell(run.trainer),
                    rank_count(run.strategy.degrees), csv_cell(strategy_text(run.strategy)),
                    csv_cell(fmt::format("{}", fmt::join(run.assumed, " "))), csv_cell(run.trap));
    text += fmt::format("{},{},{},{},{},{},{},{},{},{:.6f}",
                        run.step_time ? fmt::format("{:.9g}", run.step_time->value) : "",
                        simulated ? fmt::format("{:.9g}", p.step_time.value) : "",
                        fraction(entry.time_error), name_of(run.memory_kind), memory_bytes,
                        simulated ? std::to_string(memory_of(p, run.memory_kind).value) : "",
                        fraction(entry.memory_error), run.ran_out_of_memory ? 1 : 0,
                        simulated ? (p.fits_in_memory ? "1" : "0") : "", p.mfu);
    for (const Component& c : components_of(p.shares)) text += fmt::format(",{:.6f}", c.share);
    text += "," + csv_cell(simulated ? "" : p.problems.front().what) + "\n";
  }
  return text;
}

}  // namespace meshwright
