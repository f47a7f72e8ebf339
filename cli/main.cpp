/// meshwright: parses the command line, runs the command, and turns exceptions into messages and
/// exit codes. The only place that prints results and errors.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>

#include "cli/commands/commands.hpp"
#include "cli/flags/help_formatter.hpp"
#include "cli/flags/strategy_flags.hpp"
#include "cli/run/run_failed.hpp"
#include "cli/terminal/interrupt.hpp"
#include "cli/terminal/standard_streams.hpp"
#include "core/base/error.hpp"
#include "core/formats/file.hpp"

namespace meshwright {
namespace {

// ---- errors -------------------------------------------------------------------------------------

/// Every long flag of a command, for suggestions.
std::vector<std::string> flags_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

const char* const kCommandLine = "command line";

/// Without a command, or with an unknown one.
Diagnostic command_diagnostic(const CLI::App& app, std::span<const std::string> arguments) {
  if (arguments.empty())
    return {kCommandLine, "missing command", "run 'meshwright --help' for a list of commands"};
  const std::string& first = arguments.front();
  if (first.starts_with('-'))
    return {first, "unknown option before the command",
            "write the command first: meshwright COMMAND [OPTIONS]"};
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!command->get_group().empty()) names.push_back(command->get_name());  // not hidden
  return {kCommandLine, fmt::format("unknown command '{}'", first), suggest(first, names)};
}

/// An option or an argument that the command does not take.
Diagnostic extra_diagnostic(const CLI::App& command, const std::string& extra,
                            const std::string& see_help) {
  if (!extra.starts_with('-'))
    return {kCommandLine,
            fmt::format("unexpected argument '{}' for '{}'", extra, command.get_name()), see_help};
  const std::string flag = extra.substr(0, extra.find('='));
  const std::vector<std::string> near = nearest_names(flag, flags_of(command), 1);
  return {flag, fmt::format("unknown option for '{}'", command.get_name()),
          near.empty() ? see_help : fmt::format("did you mean '{}'?", near.front())};
}

/// The errors of CLI11. Some of them name the option in their text only.
Diagnostic usage_diagnostic(const CLI::ParseError& error, const CLI::App& app,
                            std::span<const std::string> arguments) {
  const auto parsed = app.get_subcommands();
  if (parsed.empty() || !app.remaining().empty()) return command_diagnostic(app, arguments);
  const CLI::App& command = *parsed.front();
  const std::string see_help =
      fmt::format("run 'meshwright {} --help' for usage", command.get_name());
  const std::vector<std::string> extras = command.remaining();
  if (!extras.empty()) return extra_diagnostic(command, extras.front(), see_help);
  const std::string text = error.what();
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    if (option->get_required() && option->count() == 0)
      return {kCommandLine, fmt::format("missing required argument {}", help_name(*option)),
              see_help};
    if (text.starts_with(name + ": At Most")) return {name, "given more than once", "give it once"};
    if (text.starts_with(name + ": ")) return {name, "missing value", see_help};
    if (text.starts_with("Could not convert: " + name + " = "))
      return {name, "does not take a value", "remove the value"};
  }
  return {"meshwright " + command.get_name(), text, see_help};
}

using Json = nlohmann::ordered_json;

Json json_of(const char* kind, const Diagnostic& d) {
  return {{"kind", kind}, {"where", d.where}, {"what", d.what}, {"hint", d.hint}};
}

/// The exit code stays that of the first error if standard output cannot be written either.
void print_json_errors(const Json& all) {
  const Json json{{"schema", 1}, {"error", all.front()}, {"errors", all}};
  try {
    write_file("-", json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  } catch (const RuntimeFailure& failure) {
    print_to_stderr(format(failure.diagnostic()));
  }
}

void print_json_error(const char* kind, std::span<const Diagnostic> diagnostics) {
  Json all = Json::array();
  for (const Diagnostic& d : diagnostics) all.push_back(json_of(kind, d));
  print_json_errors(all);
}

/// Prints the errors as text on standard error and, with --json, as JSON on standard output.
int report(const char* kind, std::span<const Diagnostic> diagnostics, bool json, int exit_code) {
  for (const Diagnostic& d : diagnostics) print_to_stderr(format(d));
  if (json) print_json_error(kind, diagnostics);
  return exit_code;
}

int report(const char* kind, const Diagnostic& diagnostic, bool json, int exit_code) {
  return report(kind, std::span(&diagnostic, 1), json, exit_code);
}

/// Runs no destructors: a thread that could not be stopped may still use the objects.
[[noreturn]] void end_at_once(int exit_code) {
  std::fflush(nullptr);
  std::_Exit(exit_code);
}

int report(const RunFailed& error, bool json) {
  const RunFailed::What& what = error.details();
  print_to_stderr(format(error.diagnostic()));
  if (json) {
    Json failure = json_of("run", error.diagnostic());
    failure["rank"] = what.rank.value;
    failure["task"] = what.task.empty() ? Json() : Json(what.task);
    print_json_errors(Json::array({failure}));
  }
  if (what.leaves_a_thread) end_at_once(kExitRunFailed);
  return kExitRunFailed;
}

// ---- running ------------------------------------------------------------------------------------

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
    return report("input", usage_diagnostic(error, app, arguments), json, kExitUsage);
  }
  for (const Command& command : commands) {
    if (!command.parser->parsed()) continue;
    const Outcome outcome = command.run();
    if (!outcome.text.empty()) write_file("-", outcome.text);
    print_to_stderr(outcome.notes);
    if (outcome.leaves_a_thread) end_at_once(outcome.exit_code);
    return outcome.exit_code;
  }
  return report("input", command_diagnostic(app, arguments), json, kExitUsage);
}

int run(const std::vector<std::string>& arguments) {
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
    return report("input", error.diagnostics(), json, kExitUsage);
  } catch (const InputError& error) {
    return report("input", error.diagnostics(), json, kExitBadInput);
  } catch (const RunFailed& error) {
    return report(error, json);
  } catch (const RuntimeFailure& error) {
    return report("environment", error.diagnostic(), json, kExitMissingEnvironment);
  } catch (const Interrupted&) {
    print_to_stderr("interrupted: no results written\n");
    return kExitInterrupted;
  } catch (const std::bad_alloc&) {
    return report("environment",
                  {"meshwright", "out of memory",
                   "remove --all-ranks and --contention, or use a machine with more memory"},
                  json, kExitMissingEnvironment);
  } catch (const std::exception& error) {
    return report("internal",
                  {"internal error", error.what(),
                   "report this bug, with the command line and the input files"},
                  json, kExitOurBug);
  }
}

}  // namespace
}  // namespace meshwright

int main(int argument_count, char** arguments) {
  meshwright::reserve_standard_streams();
  meshwright::watch_for_interrupts();
  return meshwright::run(std::vector<std::string>(arguments + 1, arguments + argument_count));
}
