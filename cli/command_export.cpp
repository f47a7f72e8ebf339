#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/interrupt.hpp"
#include "core/io_chrome_json.hpp"
#include "core/io_file.hpp"
#include "core/io_pftrace.hpp"

namespace meshwright {

CLI::App* add_export_command(CLI::App& app, ExportFlags& flags) {
  CLI::App* command = app.add_subcommand("export", "Write a timeline in another format.");
  command->add_option("timeline", flags.timeline, "a .pftrace file, or - for standard input")
      ->type_name("FILE");
  command->add_option("--to", flags.format, "the format: Chrome trace-event JSON")
      ->type_name("chrome");
  add_output_flags(*command, flags.output, "the result");
  command->footer(
      "Examples:\n"
      "  meshwright export step.pftrace --to chrome -o step.json\n"
      "  meshwright simulate best.plan.json -o - | meshwright export - --to chrome > step.json");
  return command;
}

Outcome run_export(const ExportFlags& flags) {
  if (flags.timeline.empty()) {
    throw UsageError({.where = "command line",
                      .what = "a timeline to export is needed",
                      .hint = "for example meshwright export step.pftrace --to chrome"});
  }
  const std::vector<std::string> formats{"chrome"};
  if (flags.format != formats.front()) {
    throw UsageError({.where = "--to",
                      .what = flags.format.empty() ? "is needed and was not given"
                                                   : "there is no format '" + flags.format + "'",
                      .hint = suggest(flags.format, formats)});
  }
  const std::string where = flags.timeline == "-" ? "standard input" : flags.timeline;
  const Timeline timeline =
      timeline_from_pftrace(read_file(flags.timeline, kLargestTraceFile), where);
  stop_if_interrupted();
  return deliver(to_chrome_json(timeline), flags.output);
}

}  // namespace meshwright
