#include "cli/program/usage_errors.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/flags/help_formatter.hpp"

namespace meshwright {
namespace {

/// Every long flag of a command, for suggestions.
std::vector<std::string> flags_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

const char* const kCommandLine = "command line";

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

}  // namespace

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

// Some errors of CLI11 name the option in their text only.
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

}  // namespace meshwright
