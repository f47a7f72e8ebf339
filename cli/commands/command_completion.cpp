#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/commands/commands.hpp"
#include "cli/flags/help_formatter.hpp"
#include "cli/flags/strategy_flags.hpp"
#include "cli/manual/known_names.hpp"
#include "cli/manual/shell_completion.hpp"

namespace meshwright {
namespace {

struct CompletionFlags {
  std::string shell;
};

CLI::App* add_completion_command(CLI::App& app, CompletionFlags& flags) {
  CLI::App* command = app.add_subcommand("completion", "Print a shell completion script.");
  add_value(*command, "shell", flags.shell, "{bash,zsh}", "bash or zsh")->required();
  command->footer(
      "Packages install both scripts. Otherwise, write them to a directory that the shell "
      "searches.\n"
      "\n"
      "Examples:\n"
      "  meshwright completion bash > ~/.local/share/bash-completion/completions/meshwright\n"
      "  meshwright completion zsh > \"${fpath[1]}/_meshwright\"");
  return command;
}

Outcome run_completion(const CLI::App& app, const CompletionFlags& flags) {
  const std::vector<std::string> shells{"bash", "zsh"};
  if (std::find(shells.begin(), shells.end(), flags.shell) == shells.end())
    throw UsageError({.where = "SHELL",
                      .what = "invalid value '" + flags.shell + "'",
                      .hint = "expected one of: bash, zsh"});
  CommandDescription program = describe(app);
  add_known_names(program);
  return {.text = flags.shell == "bash" ? bash_completion(program) : zsh_completion(program)};
}

}  // namespace

Command completion_command(CLI::App& app) {
  return make_command(app, add_completion_command,
                      [&app](const CompletionFlags& flags) { return run_completion(app, flags); });
}

}  // namespace meshwright
