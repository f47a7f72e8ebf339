#include "cli/program/call_program.hpp"

#include <CLI/CLI.hpp>
#include <optional>
#include <sstream>

#include "cli/flags/help_formatter.hpp"
#include "cli/flags/usage_error.hpp"
#include "cli/program/recipe.hpp"
#include "cli/program/usage_errors.hpp"

namespace meshwright {
namespace {

/// The parser of the program, with the values of the options that it has parsed.
class ProgramParser {
 public:
  explicit ProgramParser(std::span<AddCommand* const> commands)
      : app_("Plan, simulate and run parallel training of large models.", "meshwright") {
    app_.formatter(make_help_formatter());
    app_.set_help_flag("-h,--help", "show this help and exit");
    app_.set_version_flag("--version", "meshwright " MESHWRIGHT_VERSION,
                          "show the version and exit");
    app_.footer("Run 'meshwright COMMAND --help' for the options and examples of a command.");
    app_.require_subcommand(0, 1);
    for (AddCommand* add : commands) commands_.push_back(add(app_));
  }

  /// What the command line asks for instead of a command: help or the version.
  std::optional<Outcome> parse(const std::vector<std::string>& arguments) {
    try {
      // CLI11 expects them in reverse order.
      app_.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    } catch (const CLI::Success& help_or_version) {
      std::ostringstream text;
      app_.exit(help_or_version, text, text);
      return Outcome{.text = text.str()};
    } catch (const CLI::ParseError& error) {
      throw UsageError(usage_diagnostic(error, app_, arguments));
    }
    return std::nullopt;
  }

  const Command& command(const std::vector<std::string>& arguments) const {
    for (const Command& command : commands_)
      if (command.parser->parsed()) return command;
    throw UsageError(command_diagnostic(app_, arguments));
  }

 private:
  CLI::App app_;
  std::vector<Command> commands_;
};

Outcome call_with_recipe(std::span<AddCommand* const> commands, const RecipeArguments& recipe) {
  try {
    ProgramParser parser(commands);
    if (std::optional<Outcome> outcome = parser.parse(recipe.arguments)) return *outcome;
    return parser.command(recipe.arguments).run();
  } catch (const UsageError& error) {
    throw UsageError(placed_in_recipe(error.diagnostics(), recipe.origins));
  } catch (const InputError& error) {
    throw InputError(placed_in_recipe(error.diagnostics(), recipe.origins));
  }
}

}  // namespace

Outcome call_program(std::span<AddCommand* const> commands,
                     const std::vector<std::string>& arguments) {
  ProgramParser parser(commands);
  if (std::optional<Outcome> outcome = parser.parse(arguments)) return *outcome;
  const Command& command = parser.command(arguments);
  const std::optional<std::string> recipe = recipe_of(*command.parser);
  return recipe ? call_with_recipe(commands, with_recipe(*command.parser, arguments, *recipe))
                : command.run();
}

}  // namespace meshwright
