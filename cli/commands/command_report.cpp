#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "cli/commands/commands.hpp"
#include "cli/explain/plan_page.hpp"
#include "cli/flags/help_formatter.hpp"
#include "cli/job/job_error.hpp"
#include "cli/reports/timeline_svg.hpp"
#include "cli/terminal/interrupt.hpp"
#include "core/timeline/timeline_of.hpp"
#include "simulator/predict/predict.hpp"

namespace meshwright {
namespace {

struct ReportFlags {
  JobFlags job;
  bool svg = false;
  OutputFlags output;
};

CLI::App* add_report_command(CLI::App& app, ReportFlags& flags) {
  CLI::App* command = app.add_subcommand(
      "report", "Write a plan as one HTML page: figures, timeline, memory, sources.");
  add_job_flags(*command, flags.job);
  {
    const OptionGroup group(*command, "Report");
    command->add_flag("--svg", flags.svg, "write the timeline alone, as SVG");
  }
  add_output_flags(*command, flags.output, "the page");
  command->footer(
      "The page is one file without references to others; print it from a browser for PDF.\n"
      "With -o FILE.svg, only the timeline is written.\n"
      "\n"
      "Examples:\n"
      "  meshwright report best.plan.json -o plan.html\n"
      "  meshwright report best.plan.json --svg -o timeline.svg");
  return command;
}

bool wants_svg(const ReportFlags& flags) {
  const std::string ending = std::filesystem::path(flags.output.file).extension();
  if (ending == ".pdf")
    refuse_flag("-o",
                fmt::format("reports are HTML or SVG, but '{}' ends in .pdf", flags.output.file),
                "use -o plan.html and print that from a browser, such as with 'chromium --headless "
                "--print-to-pdf=plan.pdf plan.html'");
  return flags.svg || ending == ".svg";
}

Outcome run_report(const ReportFlags& flags) {
  if (flags.output.json)
    refuse_flag("--json", "a report is a page", "run 'meshwright explain --json' for its figures");
  const bool svg = wants_svg(flags);
  const Job job = load_job(flags.job);
  TrainingJob training = training_job(job);
  training.checkpoint = stop_if_interrupted;
  const SimulatedStep step = simulate_step(training);
  const Timeline timeline = timeline_of(step.graph, step.times);
  if (svg) return deliver(timeline_svg(timeline), flags.output);
  return deliver(plan_page(job, explain(job, flags.job), timeline), flags.output);
}

}  // namespace

Command report_command(CLI::App& app) { return make_command(app, add_report_command, run_report); }

}  // namespace meshwright
