#include "cli/program/call_program.hpp"

#include <CLI/CLI.hpp>
#include <sstream>

#include "cli/flags/help_formatter.hpp"
#include "cli/flags/usage_error.hpp"
#include "cli/program/usage_errors.hpp"

namespace meshwright {

Outcome call_program(std::span<AddCommand* const> commands,
                     const std::vector<std::string>& arguments) {
  CLI::App app("Plan, simulate and run parallel training of large models.", "meshwright");
  app.formatter(make_help_formatter());
  app.set_help_flag("-h,--help", "show this help and exit");
  app.set_version_flag("--version", "meshwright " MESHWRIGHT_VERSION, "show the version and exit");
  app.footer("Run 'meshwright COMMAND --help' for the options and examples of a command.");
  app.require_subcommand(0, 1);
  std::vector<Command> added;
  for (AddCommand* add : commands) added.push_back(add(app));
  try {
    // CLI11 expects them in reverse order.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::Success& help_or_version) {
    std::ostringstream text;
    app.exit(help_or_version, text, text);
    return {.text = text.str()};
  } catch (const CLI::ParseError& error) {
    throw UsageError(usage_diagnostic(error, app, arguments));
  }
  for (const Command& command : added)
    if (command.parser->parsed()) return command.run();
  throw UsageError(command_diagnostic(app, arguments));
}

}  // namespace meshwright
