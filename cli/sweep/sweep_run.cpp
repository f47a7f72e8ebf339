#include "cli/sweep/sweep_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "cli/terminal/interrupt.hpp"
#include "cli/terminal/standard_streams.hpp"
#include "core/formats/file.hpp"

namespace meshwright {
namespace {

/// Empty: none. Next to an output that is no file, such as /dev/null, is no place for one.
std::string points_path(const SweepFlags& flags) {
  if (flags.points == "-")
    throw UsageError({.where = "--points",
                      .what = "cannot be a standard stream",
                      .hint = "use a file instead of -"});
  if (!flags.points.empty()) return flags.points;
  const std::string& output = flags.output.file;
  std::error_code ignored;
  const auto status = std::filesystem::status(output, ignored);
  const bool is_file = !std::filesystem::exists(status) || std::filesystem::is_regular_file(status);
  return output.empty() || output == "-" || !is_file ? "" : output + ".points";
}

void write_result(const SweepRun& run, const SweepFlags& flags, Outcome& outcome) {
  const std::string& file = flags.output.file;
  if (!file.empty()) write_file(file, sweep_csv(run.study));
  if (file == "-") return;
  outcome = outcome_of(flags.output.json ? Document(sweep_json(run.study, *run.figure))
                                         : sweep_text(run.study, *run.figure),
                       flags.output);
}

void write_part(const SweepRun& run, const SweepFlags& flags, Outcome& outcome) {
  const std::string key = key_of(run.study);
  std::string lines;
  for (std::size_t i = run.part.index; i < run.study.points.size(); i += run.part.count)
    if (is_evaluated(run.study.points[i])) lines += line_of(key, i, run.study.points[i]) + "\n";
  if (flags.output.file.empty() || flags.output.file == "-")
    outcome.text = std::move(lines);
  else
    write_file(flags.output.file, lines);
}

/// Failures of the machine or the program, which are no property of the combination.
std::string failures_text(const SweepStudy& study) {
  const auto has_failed = [](const SweepPoint& point) { return point.has_failed; };
  const auto count = std::ranges::count_if(study.points, has_failed);
  if (count == 0) return "";
  const Diagnostic& first = std::ranges::find_if(study.points, has_failed)->problems.front();
  return fmt::format("warning: {} of {} combinations failed; the first: {}: {}\n", count,
                     study.points.size(), first.where, first.what);
}

}  // namespace

SweepRun load_sweep(const SweepFlags& flags) {
  SweepRun run;
  run.figure = &sweep_figure_named(flags.show);
  if (!flags.part.empty()) run.part = sweep_part_from_text(flags.part);
  run.study = load_study(flags);
  run.points_file = PointsFile(points_path(flags), key_of(run.study));
  const std::size_t known = run.points_file.read_into(run.study);
  run.missing = missing_points(run.study, run.part);
  if (known > 0 && !run.missing.empty())
    print_to_stderr(fmt::format("continuing: {} has {} of {} combinations\n",
                                run.points_file.path(), known, run.study.points.size()));
  return run;
}

void take_point(SweepRun& run, std::size_t index, SweepPoint point) {
  run.points_file.append(index, point);
  run.study.points[index] = std::move(point);
}

Outcome finish_sweep(SweepRun& run, const SweepFlags& flags) {
  if (std::ranges::none_of(run.study.points, is_evaluated)) stop_if_interrupted();
  Outcome outcome;
  if (flags.part.empty()) {
    write_result(run, flags, outcome);
    outcome.exit_code =
        best_point(run.study, *run.figure) < run.study.points.size() ? kExitDone : kExitNoPlanFits;
  } else {
    write_part(run, flags, outcome);
  }
  outcome.notes += failures_text(run.study);
  if (is_interrupted()) {
    outcome.exit_code = kExitInterrupted;
    outcome.notes +=
        fmt::format("interrupted: {} of {} combinations\n",
                    std::ranges::count_if(run.study.points, is_evaluated), run.study.points.size());
  } else if (flags.points.empty()) {
    run.points_file.remove();
  }
  return outcome;
}

Outcome run_sweep_here(const SweepFlags& flags) {
  SweepRun run = load_sweep(flags);
  const PartialResults partial_results;
  evaluate_points(
      run.study, run.missing,
      {.threads = flags.threads.value_or(0),
       .on_point = [&](std::size_t i, SweepPoint point) { take_point(run, i, std::move(point)); },
       .canceled = [] { return is_interrupted(); }});
  return finish_sweep(run, flags);
}

}  // namespace meshwright
