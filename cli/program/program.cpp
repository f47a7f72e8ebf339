#include "cli/program/program.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <new>
#include <sstream>

#include "cli/commands/commands.hpp"
#include "cli/flags/help_formatter.hpp"
#include "cli/flags/output_flags.hpp"
#include "cli/flags/usage_error.hpp"
#include "cli/program/error_output.hpp"
#include "cli/program/usage_errors.hpp"
#include "cli/run/run_failed.hpp"
#include "cli/terminal/interrupt.hpp"
#include "cli/terminal/standard_streams.hpp"
#include "core/base/error.hpp"
#include "core/formats/file.hpp"

namespace meshwright {
namespace {

int run_parsed(CLI::App& app, const std::vector<Command>& commands,
               const std::vector<std::string>& arguments, bool json) {
  try {
    // CLI11 expects them in reverse order.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::Success& help_or_version) {
    std::ostringstream text;
    app.exit(help_or_version, text, text);
    write_file("-", text.str());
    return kExitDone;
  } catch (const CLI::ParseError& error) {
    return report_error("input", usage_diagnostic(error, app, arguments), json, kExitUsage);
  }
  for (const Command& command : commands) {
    if (!command.parser->parsed()) continue;
    const Outcome outcome = command.run();
    if (!outcome.text.empty()) write_file("-", outcome.text);
    print_to_stderr(outcome.notes);
    if (outcome.leaves_a_thread) end_at_once(outcome.exit_code);
    return outcome.exit_code;
  }
  return report_error("input", command_diagnostic(app, arguments), json, kExitUsage);
}

}  // namespace

int run_program(const std::vector<std::string>& arguments) {
  CLI::App app("Plan, simulate and run parallel training of large models.", "meshwright");
  app.formatter(make_help_formatter());
  app.set_help_flag("-h,--help", "show this help and exit");
  app.set_version_flag("--version", "meshwright " MESHWRIGHT_VERSION, "show the version and exit");
  app.footer("Run 'meshwright COMMAND --help' for the options and examples of a command.");
  app.require_subcommand(0, 1);
  std::vector<Command> commands;
  for (AddCommand* add : kCommands) commands.push_back(add(app));
  const bool json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
  try {
    return run_parsed(app, commands, arguments, json);
  } catch (const UsageError& error) {
    return report_errors("input", error.diagnostics(), json, kExitUsage);
  } catch (const InputError& error) {
    return report_errors("input", error.diagnostics(), json, kExitBadInput);
  } catch (const RunFailed& error) {
    return report_failed_run(error, json);
  } catch (const RuntimeFailure& error) {
    return report_error("environment", error.diagnostic(), json, kExitMissingEnvironment);
  } catch (const Interrupted&) {
    print_to_stderr("interrupted: no results written\n");
    return kExitInterrupted;
  } catch (const std::bad_alloc&) {
    return report_error("environment",
                        {"meshwright", "out of memory",
                         "remove --all-ranks and --contention, or use a machine with more memory"},
                        json, kExitMissingEnvironment);
  } catch (const std::exception& error) {
    return report_error("internal",
                        {"internal error", error.what(),
                         "report this bug, with the command line and the input files"},
                        json, kExitOurBug);
  }
}

}  // namespace meshwright
