#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/commands/commands.hpp"
#include "cli/flags/help_formatter.hpp"
#include "cli/flags/strategy_flags.hpp"
#include "cli/terminal/interrupt.hpp"
#include "cli/validation/accuracy_baseline.hpp"
#include "cli/validation/fit_runs.hpp"
#include "cli/validation/rank_runs.hpp"
#include "cli/validation/validation_report.hpp"
#include "core/formats/file.hpp"

namespace meshwright {
namespace {

struct ValidateFlags {
  std::vector<std::string> files, sets;
  bool rows = false;
  std::string table = "text", csv, baseline, write_baseline, write_errors;
  std::optional<int> threads, fit_steps, rank;
  OutputFlags output;
};

/// "SET#ID" selects one run.
PublishedSet read_set(const std::string& name) {
  if (!names_published_run(name)) return published_set_from_toml(find_published_set(name));
  const std::size_t mark = name.rfind('#');
  PublishedSet set = published_set_from_toml(find_published_set(name.substr(0, mark)));
  const PublishedRun run = find_run(set, name.substr(mark + 1));
  set.runs = {run};
  return set;
}

/// The files, or all presets; of these, the sets that were asked for.
std::vector<PublishedSet> read_sets(const ValidateFlags& flags) {
  std::vector<PublishedSet> sets;
  for (const std::string& name : flags.files.empty() ? published_set_names() : flags.files)
    sets.push_back(read_set(name));
  if (flags.sets.empty()) return sets;
  std::vector<std::string> names;
  names.reserve(sets.size());
  for (const PublishedSet& set : sets) names.push_back(set.name);
  for (const std::string& name : flags.sets)
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw UsageError({.where = "--set",
                        .what = fmt::format("unknown set '{}'", name),
                        .hint = suggest(name, names)});
  std::erase_if(sets, [&](const PublishedSet& set) {
    return std::find(flags.sets.begin(), flags.sets.end(), set.name) == flags.sets.end();
  });
  return sets;
}

/// What `--baseline` adds to the result.
void compare_with_baseline(const std::string& file, const AccuracyBaseline& now, Outcome& outcome) {
  const std::vector<std::string> worse =
      worse_sets(now, accuracy_baseline_from_json(read_file(file), file));
  if (worse.empty()) return;
  outcome.exit_code = kExitBeyondBaseline;
  outcome.notes += fmt::format("less accurate than {}:\n", file);
  for (const std::string& line : worse) outcome.notes += "  " + line + "\n";
}

Outcome fit_outcome(const LoadedRuns& runs, const ValidateFlags& flags) {
  const RunFit fit = fit_runs(runs, *flags.fit_steps, flags.threads.value_or(0));
  if (!flags.write_errors.empty())
    write_file(flags.write_errors, to_csv(validated_runs(runs, fit)));
  return deliver(fit_text(runs, fit), flags.output);
}

/// A ranking has no errors to write or compare.
void check_ranking_flags(const ValidateFlags& flags) {
  for (const auto& [flag, is_given] :
       {std::pair("--fit", flags.fit_steps.has_value()), std::pair("--rows", flags.rows),
        std::pair("--csv", !flags.csv.empty()), std::pair("--baseline", !flags.baseline.empty()),
        std::pair("--write-baseline", !flags.write_baseline.empty()),
        std::pair("--write-errors", !flags.write_errors.empty())})
    if (is_given) refuse_flag(flag, "has no effect with --rank", "omit one of them");
}

Outcome ranking_outcome(const LoadedRuns& runs, const ValidateFlags& flags) {
  const std::vector<RankedRun> ranked =
      rank_runs(runs, {.rank = {.fitting = *flags.rank},
                       .threads = flags.threads.value_or(0),
                       .canceled = [] { return is_interrupted(); }});
  stop_if_interrupted();
  return deliver(flags.output.json ? ranking_json(ranked) : ranking_text(ranked), flags.output);
}

CLI::App* add_validate_command(CLI::App& app, ValidateFlags& flags) {
  CLI::App* command = app.add_subcommand(
      "validate", "Predict published training runs and compare with their measured values.");
  add_value(*command, "files", flags.files, "SET|FILE",
            "published runs: preset, file, or SET#ID for a single run (default: all presets)");
  {
    const OptionGroup group(*command, "Validation");
    add_value(*command, "--set", flags.sets, "NAME", "only the runs of this set; repeatable")
        ->take_all();
    command->add_flag("--rows", flags.rows, "print one line per run");
    add_value(*command, "--table", flags.table, "{text,markdown}",
              "style of the tables (default: text)");
    add_value(*command, "--csv", flags.csv, "FILE", "write one line per run to FILE, as CSV");
    add_value(*command, "--baseline", flags.baseline, "FILE",
              "exit with status 1 if the mean error of a set is larger than in FILE by more "
              "than 0.5 percentage points");
    add_count(
        *command, "--fit", flags.fit_steps, {0, 20},
        "fit the constants shared by trainers and devices to the runs, with at most this many "
        "steps, and print the errors without the source and the model of each run; 0: keep "
        "the constants");
    add_value(*command, "--write-errors", flags.write_errors, "FILE",
              "with --fit: write the errors without the source, for error bars, to FILE");
    add_count(*command, "--rank", flags.rank, {1, 100'000},
              "instead, rank the plan of each run among this many plans at random that its trainer "
              "can run and that fit, and search the best one");
    add_value(*command, "--write-baseline", flags.write_baseline, "FILE",
              "write the mean errors to FILE");
    add_count(*command, "--threads", flags.threads, kThreadRange,
              "threads; 0: all cores (default: 0)");
  }
  add_report_flags(*command, flags.output, "the report");
  command->footer(
      "Examples:\n"
      "  meshwright validate korthikanti-2022 --rows\n"
      "  meshwright validate --table markdown -o accuracy.md");
  return command;
}

Outcome run_validate(const ValidateFlags& flags) {
  if (flags.table != "text" && flags.table != "markdown")
    throw UsageError({.where = "--table",
                      .what = fmt::format("invalid value '{}'", flags.table),
                      .hint = "expected one of: text, markdown"});
  if (flags.rank) check_ranking_flags(flags);
  const LoadedRuns runs = load_runs(read_sets(flags));
  stop_if_interrupted();
  if (flags.fit_steps) return fit_outcome(runs, flags);
  if (flags.rank) return ranking_outcome(runs, flags);
  const std::vector<RunPrediction> predictions = predict_runs(
      runs, {.threads = flags.threads.value_or(0), .canceled = [] { return is_interrupted(); }});
  stop_if_interrupted();
  const std::vector<ComparedRun> compared = compare_runs(runs, predictions);
  if (!flags.csv.empty()) write_file(flags.csv, validation_csv(compared));
  const AccuracyBaseline now = accuracy_of(compared);
  if (!flags.write_baseline.empty()) write_file(flags.write_baseline, to_json(now));
  const ValidationReportOptions options{
      .style = flags.table == "markdown" ? TableStyle::kMarkdown : TableStyle::kText,
      .rows = flags.rows};
  Outcome outcome =
      deliver(flags.output.json ? validation_json(compared) : validation_text(compared, options),
              flags.output);
  if (!flags.baseline.empty()) compare_with_baseline(flags.baseline, now, outcome);
  return outcome;
}

}  // namespace

Command validate_command(CLI::App& app) {
  return make_command(app, add_validate_command, run_validate);
}

}  // namespace meshwright
