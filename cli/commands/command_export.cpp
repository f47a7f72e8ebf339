#include <CLI/CLI.hpp>

#include "cli/commands/commands.hpp"
#include "cli/flags/help_formatter.hpp"
#include "cli/flags/strategy_flags.hpp"
#include "cli/terminal/interrupt.hpp"
#include "core/formats/chrome_json.hpp"
#include "core/formats/file.hpp"
#include "core/formats/pftrace.hpp"

namespace meshwright {
namespace {

struct ExportFlags {
  std::string timeline, format;
  OutputFlags output;
};

CLI::App* add_export_command(CLI::App& app, ExportFlags& flags) {
  CLI::App* command = app.add_subcommand("export", "Convert a timeline to another format.");
  add_value(*command, "timeline", flags.timeline, "FILE",
            "timeline (.pftrace), or - for standard input")
      ->required();
  add_value(*command, "--to", flags.format, "{chrome}",
            "output format: Chrome Trace Event JSON (required)");
  add_output_flags(*command, flags.output, "the result");
  command->footer(
      "Examples:\n"
      "  meshwright export step.pftrace --to chrome -o step.json\n"
      "  meshwright simulate best.plan.json -o - | meshwright export - --to chrome > step.json");
  return command;
}

Outcome run_export(const ExportFlags& flags) {
  const std::vector<std::string> formats{"chrome"};
  if (flags.format != formats.front()) {
    throw UsageError({.where = "--to",
                      .what = flags.format.empty() ? "missing required option"
                                                   : "invalid value '" + flags.format + "'",
                      .hint = suggest(flags.format, formats)});
  }
  const std::string where = flags.timeline == "-" ? "standard input" : flags.timeline;
  const Timeline timeline =
      timeline_from_pftrace(read_file(flags.timeline, kLargestTraceFile), where);
  stop_if_interrupted();
  return deliver(to_chrome_json(timeline), flags.output);
}

}  // namespace

Command export_command(CLI::App& app) { return make_command(app, add_export_command, run_export); }

}  // namespace meshwright
