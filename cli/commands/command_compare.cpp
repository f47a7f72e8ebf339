#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.hpp"
#include "cli/flags/amounts.hpp"
#include "cli/flags/help_formatter.hpp"
#include "cli/flags/strategy_flags.hpp"
#include "cli/reports/report.hpp"
#include "cli/terminal/table.hpp"
#include "cli/validation/step_range.hpp"
#include "core/base/parse_quantity.hpp"
#include "core/base/value_named.hpp"
#include "core/formats/file.hpp"
#include "core/formats/pftrace.hpp"
#include "core/timeline/compare.hpp"

namespace meshwright {
namespace {

struct CompareFlags {
  std::string predicted, measured;
  std::string max_error;  ///< "10%"; empty: no limit
  std::string watch;      ///< file with the range of the step time; empty: none
  OutputFlags output;
};

using Json = nlohmann::ordered_json;

std::string error_text(const std::optional<double>& error) {
  return error ? fmt::format("{:+.1f} %", 100 * *error) : "-";
}
Json json_of(const std::optional<double>& error) { return error ? Json(*error) : Json(); }

std::string signed_text(Ticks time) {
  return time < Ticks() ? "-" + to_text(-time) : "+" + to_text(time);
}

std::string_view name_of(TimelineClock clock) {
  constexpr std::array<std::string_view, 4> kNames{"simulated", "wall", "virtual", "replay"};
  return entry_of(kNames, clock);
}

// ---- text ----

Document tasks_table(const std::string& title, const std::vector<ComparedTasks>& groups) {
  if (groups.empty()) return "";
  Table table = empty_table(left_aligned(title), "tasks", "predicted", "measured", "error",
                            "mean task error");
  for (const ComparedTasks& g : groups)
    table.rows.push_back({g.name, std::to_string(g.tasks), to_text(g.predicted),
                          to_text(g.measured), error_text(relative_error(g.predicted, g.measured)),
                          percent(g.mean_error)});
  return Document("\n") + indented(std::move(table));
}

Document memory_table(const ValidationReport& report) {
  if (report.memory.empty()) return "\nPeak memory: not recorded in both timelines.\n";
  Table table = empty_table(left_aligned("peak memory"), "predicted", "measured", "error");
  for (const ComparedMemory& m : report.memory)
    table.rows.push_back(
        {fmt::format("rank {}", m.rank.value), to_text(m.predicted), to_text(m.measured),
         m.predicted == m.measured ? "none" : error_text(relative_error(m.predicted, m.measured))});
  return Document("\n") + indented(std::move(table));
}

Document worst_table(const ValidationReport& report) {
  Table table = empty_table(left_aligned("largest errors"), "predicted", "measured", "error");
  for (const ComparedTask& task : report.worst)
    table.rows.push_back({task.name, to_text(task.predicted), to_text(task.measured),
                          error_text(relative_error(task.predicted, task.measured))});
  return Document("\n") + indented(std::move(table));
}

Document attribution_text(const ValidationReport& report) {
  const StepAttribution& a = report.attribution;
  return fmt::format("\nMeasured minus predicted time on rank {}, the last to finish\n",
                     a.rank.value) +
         Document(std::vector<NamedValue>{{"compute", signed_text(a.compute)},
                                          {"communication", signed_text(a.communication)},
                                          {"waiting", signed_text(a.waiting)},
                                          {"total", signed_text(total(a))}});
}

Document human_text(const ValidationReport& report, const Timeline& measured) {
  Document text = fmt::format(
      "step time  predicted {}, measured {} ({} clock), error {}\n"
      "           median of {} steps, IQR {}; {} tasks compared\n",
      to_text(report.predicted_step), to_text(report.measured_step), name_of(measured.clock),
      error_text(step_error(report)), report.counted_steps, to_text(report.measured_spread),
      report.matched);
  if (report.ranks_left_out > 0)
    text += fmt::format(
        "           {} ranks not compared: the prediction has only one representative per\n"
        "           pipeline rank; use simulate --all-ranks to compare all ranks\n",
        report.ranks_left_out);
  text += attribution_text(report);
  text += tasks_table("kind", report.by_kind) + tasks_table("stage", report.by_stage) +
          tasks_table("link", report.by_stream);
  return std::move(text) + memory_table(report) + worst_table(report);
}

// ---- JSON ----

Json json_of(const ComparedTasks& g) {
  return {{"tasks", g.tasks},
          {"predicted_ns", to_nanoseconds(g.predicted)},
          {"measured_ns", to_nanoseconds(g.measured)},
          {"error", json_of(relative_error(g.predicted, g.measured))},
          {"mean_task_error", g.mean_error}};
}

Json by_name(const std::vector<ComparedTasks>& groups) {
  Json json = Json::object();
  for (const ComparedTasks& group : groups) json[group.name] = json_of(group);
  return json;
}

Json memory_json(const ValidationReport& report) {
  Json ranks = Json::array();
  for (const ComparedMemory& m : report.memory)
    ranks.push_back({{"rank", m.rank.value},
                     {"predicted_bytes", m.predicted.value},
                     {"measured_bytes", m.measured.value},
                     {"error", json_of(relative_error(m.predicted, m.measured))}});
  return {{"largest_error", json_of(peak_memory_error(report))}, {"ranks", ranks}};
}

std::string json_text(const ValidationReport& report, const std::optional<bool>& is_within) {
  const StepAttribution& a = report.attribution;
  Json stages = Json::array(), worst = Json::array();
  for (const ComparedTasks& stage : report.by_stage) stages.push_back(json_of(stage));
  for (const ComparedTask& task : report.worst)
    worst.push_back({{"task", task.name},
                     {"predicted_ns", to_nanoseconds(task.predicted)},
                     {"measured_ns", to_nanoseconds(task.measured)}});
  Json json{{"schema", 1},
            {"step",
             {{"predicted_ns", to_nanoseconds(report.predicted_step)},
              {"measured_ns", to_nanoseconds(report.measured_step)},
              {"error", json_of(step_error(report))},
              {"counted_steps", report.counted_steps},
              {"spread_ns", to_nanoseconds(report.measured_spread)}}},
            {"tasks_compared", report.matched},
            {"ranks_left_out", report.ranks_left_out},
            {"by_kind", by_name(report.by_kind)},
            {"by_stage", stages},
            {"by_link", by_name(report.by_stream)},
            {"memory", memory_json(report)},
            {"worst", worst},
            {"attribution_ns",
             {{"rank", a.rank.value},
              {"compute", to_nanoseconds(a.compute)},
              {"communication", to_nanoseconds(a.communication)},
              {"waiting", to_nanoseconds(a.waiting)}}},
            {"verdict", is_within ? Json(*is_within ? "within" : "beyond") : Json()}};
  constexpr int kIndent = 2;
  return json.dump(kIndent, ' ', false, Json::error_handler_t::replace) + "\n";
}

Timeline read_timeline(const std::string& path) {
  return timeline_from_pftrace(read_file(path, kLargestTraceFile),
                               path == "-" ? "standard input" : path);
}

CLI::App* add_compare_command(CLI::App& app, CompareFlags& flags) {
  CLI::App* command =
      app.add_subcommand("compare", "Compare a measured timeline with its prediction.");
  add_value(*command, "predicted", flags.predicted, "FILE",
            "predicted timeline, written by simulate -o")
      ->required();
  add_value(*command, "measured", flags.measured, "FILE", "measured timeline, written by run -o")
      ->required();
  add_value(*command, "--max-error", flags.max_error, "RATIO",
            "exit with status 1 if step time or peak memory are off by more, as in 10%");
  add_value(*command, "--watch", flags.watch, "FILE",
            "exit with status 1 if the measured step time leaves the range in FILE, written by "
            "simulate --write-watch");
  add_report_flags(*command, flags.output, "the result");
  command->footer(
      "Errors are relative to the measured value: -10 % means that the prediction is 10 % too "
      "low.\n"
      "The first of several measured steps is a warm-up and is ignored.\n"
      "\n"
      "Examples:\n"
      "  meshwright run best.plan.json --steps 10 --all-steps -o measured.pftrace\n"
      "  meshwright compare predicted.pftrace measured.pftrace --max-error 10%\n"
      "  meshwright compare predicted.pftrace measured.pftrace --watch step.range.json");
  return command;
}

std::string_view provenance_of(const Timeline& timeline, const char* what) {
  const auto found = timeline.provenance.find(what);
  return found == timeline.provenance.end() ? "unknown" : std::string_view(found->second);
}

void watch_step(const std::string& file, const Timeline& measured, Ticks step, Outcome& outcome) {
  const StepRange range = read_step_range(file);
  check_range_belongs_to(range, provenance_of(measured, "model"),
                         provenance_of(measured, "strategy"), file);
  const std::string outside = outside_range_text(range, step, file);
  if (!outside.empty()) outcome.exit_code = kExitBeyondBaseline;
  outcome.notes += outside;
}

Outcome run_compare(const CompareFlags& flags) {
  std::optional<double> limit;
  if (!flags.max_error.empty()) limit = parse_positive_share("--max-error", flags.max_error);
  const Timeline predicted = read_timeline(flags.predicted);
  const Timeline measured = read_timeline(flags.measured);
  const ValidationReport report = compare({predicted, flags.predicted}, {measured, flags.measured});
  std::optional<bool> is_within;
  if (limit)
    is_within = std::abs(step_error(report).value_or(0)) <= *limit &&
                peak_memory_error(report).value_or(0) <= *limit;
  Document text = flags.output.json ? json_text(report, is_within) : human_text(report, measured);
  if (limit && !flags.output.json)
    text +=
        fmt::format("\n{}: step time and peak memory are{} within {} of the measurement\n",
                    *is_within ? "PASS" : "FAIL", *is_within ? "" : " not both", percent(*limit));
  Outcome outcome = deliver(text, flags.output);
  outcome.exit_code = is_within.value_or(true) ? kExitDone : kExitBeyondBaseline;
  if (!flags.watch.empty()) watch_step(flags.watch, measured, report.measured_step, outcome);
  return outcome;
}

}  // namespace

Command compare_command(CLI::App& app) {
  return make_command(app, add_compare_command, run_compare);
}

}  // namespace meshwright
