#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/commands/commands.hpp"
#include "cli/explain/explanation.hpp"
#include "cli/explain/plan_difference.hpp"
#include "cli/flags/choice_flag.hpp"
#include "cli/flags/help_formatter.hpp"
#include "cli/job/launch_outcome.hpp"
#include "models/launch/launch_text.hpp"

namespace meshwright {
namespace {

struct LaunchChoice {
  std::optional<LaunchTarget> target;  ///< absent: that of the plan's trainer
};
struct ExplainFlags {
  JobFlags job;
  std::string against;                 ///< plan file or published run; empty: explain one plan
  std::optional<LaunchChoice> launch;  ///< print launch options instead
  FailureFlags failures;
  OutputFlags output;
};

constexpr std::string_view kTargetOfTrainer = "auto";

std::optional<LaunchChoice> launch_choice_from_word(std::string_view word) {
  if (word == kTargetOfTrainer) return LaunchChoice{};
  if (const auto target = launch_target_from_word(word)) return LaunchChoice{*target};
  return std::nullopt;
}

std::vector<std::string> launch_choices() {
  std::vector<std::string> words = launch_words();
  words.emplace_back(kTargetOfTrainer);
  return words;
}

/// The trainer named on the command line, or that of the plan.
LaunchTarget target_of(const LaunchChoice& choice, const Trainer& trainer) {
  if (choice.target) return *choice.target;
  if (trainer.launch) return *trainer.launch;
  refuse_flag("--launch", fmt::format("trainer '{}' has no launch options to print", trainer.name),
              fmt::format("use one of: {}", fmt::join(launch_words(), ", ")));
}

Outcome explain_launch(LaunchTarget target, const Plan& plan, const OutputFlags& flags) {
  return launch_outcome(name_of(target), launch_text(target, plan), flags);
}

CLI::App* add_explain_command(CLI::App& app, ExplainFlags& flags) {
  CLI::App* command = app.add_subcommand(
      "explain", "Explain a plan: time and memory by stage, and the effect of single changes.");
  add_job_flags(*command, flags.job);
  add_failure_flags(*command, flags.failures);
  {
    const OptionGroup group(*command, "Comparison");
    add_value(*command, "--against", flags.against, "FILE",
              "explain the difference to this plan instead, term by term: plan file, - or SET#ID");
  }
  {
    const OptionGroup group(*command, "Launch");
    add_choice(*command, "--launch", flags.launch, launch_choice_from_word, launch_choices(),
               "print the options or config of this trainer for the plan instead; auto: of the "
               "plan's trainer");
  }
  add_report_flags(*command, flags.output, "the result");
  command->footer(
      "Examples:\n"
      "  meshwright explain best.plan.json\n"
      "  meshwright explain job.plan.json --against best.plan.json\n"
      "  meshwright explain --model llama-3.1-70b --cluster dgx-h100 --gpus 64 --tp 8 --pp 4 \\\n"
      "      --sequence-parallel --zero 1 --global-batch 128 --seq 8192");
  return command;
}

/// --trainer and --calibration apply to both plans.
Outcome explain_difference(const ExplainFlags& flags) {
  if (flags.launch || !flags.failures.mtbf.empty()) {
    const char* other = flags.launch ? "--launch" : "--mtbf";
    refuse_flag("--against", fmt::format("cannot be combined with '{}'", other),
                fmt::format("use '{}' with one plan alone", other));
  }
  if (flags.job.plan_file == "-" && flags.against == "-")
    refuse_flag("--against", "both plans cannot be read from standard input",
                "give the path of at least one plan file");
  JobFlags b_flags;
  b_flags.plan_file = flags.against;
  b_flags.sources.trainer = flags.job.sources.trainer;
  b_flags.sources.calibration = flags.job.sources.calibration;
  const Job a = load_job(flags.job), b = load_job(b_flags);
  const PlanDifference result = compare_plans(a, b);
  return deliver(flags.output.json ? difference_json(result) : difference_text(result),
                 flags.output);
}

Outcome run_explain(const ExplainFlags& flags) {
  if (!flags.against.empty()) return explain_difference(flags);
  if (flags.launch && !flags.output.json && flags.output.format != DocumentFormat::kText)
    refuse_flag("--format", "cannot be combined with '--launch', which prints no table",
                "remove it, or use --format json");
  const Job job = load_job(flags.job);
  if (flags.launch)
    return explain_launch(target_of(*flags.launch, job.trainer), job.file.plan, flags.output);
  const Explanation explanation = explain(job, flags.job);
  return deliver(flags.output.json ? explanation_json(job, explanation, flags.failures)
                                   : explanation_text(job, explanation, flags.failures),
                 flags.output);
}

}  // namespace

Command explain_command(CLI::App& app) {
  return make_command(app, add_explain_command, run_explain);
}

}  // namespace meshwright
