#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/commands/commands.hpp"
#include "cli/flags/choice_flag.hpp"
#include "cli/flags/help_formatter.hpp"
#include "cli/flags/strategy_flags.hpp"
#include "cli/job/job.hpp"
#include "cli/job/launch_outcome.hpp"
#include "cli/terminal/interrupt.hpp"
#include "core/formats/chrome_json.hpp"
#include "core/formats/file.hpp"
#include "core/formats/pftrace.hpp"
#include "models/launch/export_launch.hpp"

namespace meshwright {
namespace {

struct ExportFlags {
  std::string file, format;
  OutputFlags output;
};

constexpr std::string_view kChrome = "chrome";

std::vector<std::string> export_words() {
  std::vector<std::string> words{std::string(kChrome)};
  for (const ExportTarget& target : export_targets()) words.emplace_back(target.word);
  return words;
}

std::string targets_text() {
  std::string text = fmt::format("  {:<17}{}\n", kChrome, "Chrome Trace Event JSON of a timeline");
  for (const ExportTarget& target : export_targets())
    text += fmt::format("  {:<17}{}: {}\n", target.word, target.name, target.help);
  return text;
}

CLI::App* add_export_command(CLI::App& app, ExportFlags& flags) {
  CLI::App* command = app.add_subcommand(
      "export", "Write a plan as a launch of a training program, or convert a timeline.");
  add_value(*command, "file", flags.file, "FILE",
            "plan (.plan.json, or SET#ID for a published run) or, for chrome, timeline (.pftrace); "
            "- for standard input")
      ->required();
  add_value(*command, "--to", flags.format, choices_text(export_words()),
            "output format (required)");
  add_output_flags(*command, flags.output, "the result");
  command->footer(
      "Formats:\n" + targets_text() +
      "Launches train on mock data. What a program does not support is listed in the comments of\n"
      "the launch and on standard error.\n"
      "\n"
      "Examples:\n"
      "  meshwright export best.plan.json --to megatron -o train.sh\n"
      "  meshwright export best.plan.json --to slurm -o train.sbatch\n"
      "  meshwright export step.pftrace --to chrome -o step.json\n"
      "  meshwright simulate best.plan.json -o - | meshwright export - --to chrome > step.json");
  return command;
}

Outcome export_timeline(const ExportFlags& flags) {
  const std::string where = flags.file == "-" ? "standard input" : flags.file;
  const Timeline timeline = timeline_from_pftrace(read_file(flags.file, kLargestTraceFile), where);
  stop_if_interrupted();
  return deliver(to_chrome_json(timeline), flags.output);
}

/// The profile that compiles nothing (models/trainers/torchtitan-eager.toml).
constexpr std::string_view kEagerTrainer = "torchtitan-eager";

Outcome export_plan(const ExportTarget& target, const ExportFlags& flags) {
  JobFlags job_flags;
  job_flags.plan_file = flags.file;
  const Job job = load_job(job_flags);
  const std::string where = flags.file == "-" ? "standard input" : flags.file;
  throw_if_any(export_problems(target, job.file.plan, where + "#/"));
  LaunchJob launch = launch_job(job.file.plan,
                                launch_model({.name = job.file.model_name,
                                              .where = where + "#/model/config",
                                              .text = job.file.model_config}),
                                job.cluster, job.file.cluster_name);
  launch.compiles = job.trainer.name != kEagerTrainer;
  return launch_outcome(target.name, export_launch(target, launch), flags.output);
}

Outcome run_export(const ExportFlags& flags) {
  if (flags.format == kChrome) return export_timeline(flags);
  if (const ExportTarget* target = find_export_target(flags.format))
    return export_plan(*target, flags);
  throw UsageError({.where = "--to",
                    .what = flags.format.empty() ? "missing required option"
                                                 : "invalid value '" + flags.format + "'",
                    .hint = suggest(flags.format, export_words())});
}

}  // namespace

Command export_command(CLI::App& app) { return make_command(app, add_export_command, run_export); }

}  // namespace meshwright
