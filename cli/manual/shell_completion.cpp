#include "cli/manual/shell_completion.hpp"

#include <fmt/format.h>

#include <map>
#include <vector>

namespace meshwright {
namespace {

/// In single quotes, for the shell.
std::string shell_quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// ---- bash ---------------------------------------------------------------------------------------

/// Marks file names in a list of words; literals are lower case.
constexpr const char* kFile = "FILE";

std::string candidates_of(const OptionDescription& option) {
  std::string words = fmt::format("{}", fmt::join(option.choices, " "));
  if (option.takes_file) words += words.empty() ? kFile : std::string(" ") + kFile;
  return words;
}

/// Case patterns 'COMMAND FLAG' that share a list of words, by that list.
std::map<std::string, std::vector<std::string>> patterns_of_words(
    const CommandDescription& program) {
  std::map<std::string, std::vector<std::string>> patterns;
  for (const CommandDescription& command : program.commands) {
    std::string positional_words;
    for (const OptionDescription& argument : command.positionals) {
      const std::string words = candidates_of(argument);
      if (positional_words.find(words) == std::string::npos)
        positional_words += (positional_words.empty() ? "" : " ") + words;
    }
    if (!command.positionals.empty())
      patterns[positional_words].push_back(shell_quoted(command.name + " "));
    for (const OptionDescription& option : command.options)
      if (!option.value.empty())
        for (const std::string& flag : option.flags)
          patterns[candidates_of(option)].push_back(shell_quoted(command.name + " " + flag));
  }
  return patterns;
}

std::string values_function(const CommandDescription& program) {
  std::string script = fmt::format(
      "# Values of an option ($2) or of the positional arguments ('') of a command ($1); {} "
      "stands\n"
      "# for file names. Fails if it takes none.\n"
      "_{}_values() {{\n  case \"$1 $2\" in\n",
      kFile, program.name);
  for (const auto& [words, patterns] : patterns_of_words(program))
    script += fmt::format("    {})\n      printf '%s\\n' {} ;;\n",
                          fmt::join(patterns, " | \\\n    "), shell_quoted(words));
  return script + "    *) return 1 ;;\n  esac\n}\n\n";
}

std::string options_case(const CommandDescription& command, const std::string& pattern) {
  std::vector<std::string> flags;
  for (const OptionDescription& option : command.options)
    flags.insert(flags.end(), option.flags.begin(), option.flags.end());
  return fmt::format("    {})\n      printf '%s\\n' {} ;;\n", pattern,
                     shell_quoted(fmt::format("{}", fmt::join(flags, " "))));
}

std::string options_function(const CommandDescription& program) {
  std::string script = fmt::format("_{}_options() {{\n  case $1 in\n", program.name);
  script += options_case(program, "''");
  for (const CommandDescription& command : program.commands)
    script += options_case(command, command.name);
  return script + "  esac\n}\n\n";
}

/// PROGRAM and COMMANDS are replaced.
constexpr const char* kMainFunction = R"bash(_PROGRAM() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local command='' option='' words='' i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    if [[ ${COMP_WORDS[i]} != -* ]]; then
      command=${COMP_WORDS[i]}
      break
    fi
  done
  # Bash splits "--option=value" into three words.
  if [[ $current == = ]]; then
    option=$previous current=''
  elif [[ $previous == = ]]; then
    option=${COMP_WORDS[COMP_CWORD - 2]}
  elif [[ $previous == -* ]]; then
    option=$previous
  fi
  if [[ -z $command ]]; then
    words='COMMANDS'
    [[ $current != -* ]] || words=$(_PROGRAM_options '')
  elif [[ -n $option ]] && words=$(_PROGRAM_values "$command" "$option"); then
    :
  elif [[ $current == -* ]]; then
    words=$(_PROGRAM_options "$command")
  else
    words=$(_PROGRAM_values "$command" '') || words=$(_PROGRAM_options "$command")
  fi
  if [[ " $words " == *' FILE '* ]]; then
    words=${words/FILE/}
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  fi
  mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "$words" -- "$current")
  if ((${#COMPREPLY[@]} == 1)) && [[ ${COMPREPLY[0]} == *[=:] ]]; then
    compopt -o nospace 2>/dev/null
  fi
  return 0
}

complete -F _PROGRAM PROGRAM
)bash";

// ---- zsh ----------------------------------------------------------------------------------------

/// With a backslash in front of every character of `special`, and of backslashes.
std::string escaped(const std::string& text, std::string_view special) {
  std::string result;
  for (const char c : text) {
    if (c == '\\' || special.find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

/// ":message:action" of _arguments. A leading blank has the action called as it stands.
std::string value_spec(const CommandDescription& program, const OptionDescription& option) {
  const std::string& name = option.flags.empty() ? option.positional : option.flags.back();
  const std::string message = escaped(name.substr(name.find_first_not_of('-')), ":");
  if (option.choices.empty())
    return fmt::format(":{}:{}", message, option.takes_file ? "_files" : " ");
  return fmt::format(":{}: _{}_values{} {}", message, program.name,
                     option.takes_file ? " FILE" : "",
                     escaped(fmt::format("{}", fmt::join(option.choices, " ")), ":"));
}

/// Specifications of one option, one per name: names exclude each other unless it may repeat.
std::vector<std::string> option_specs(const CommandDescription& program,
                                      const OptionDescription& option) {
  std::vector<std::string> specs;
  for (const std::string& flag : option.flags) {
    std::string spec = option.may_repeat ? "*" : "";
    if (!option.may_repeat && option.flags.size() > 1)
      spec = fmt::format("({})", fmt::join(option.flags, " "));
    const bool is_long = flag.starts_with("--");
    spec += flag + (option.value.empty() ? "" : is_long ? "=" : "+");
    spec += "[" + escaped(option.description, "[]") + "]";
    if (!option.value.empty()) spec += value_spec(program, option);
    specs.push_back(shell_quoted(spec));
  }
  return specs;
}

std::string arguments_call(const CommandDescription& program, const CommandDescription& command) {
  std::string call = "_arguments";
  for (const OptionDescription& option : command.options)
    for (const std::string& spec : option_specs(program, option)) call += " \\\n        " + spec;
  for (const OptionDescription& argument : command.positionals)
    call += " \\\n        " + shell_quoted(value_spec(program, argument));
  return call;
}

/// PROGRAM is replaced.
constexpr const char* kValuesFunction =
    R"zsh(# Completes values; FILE stands for file names. No space follows a prefix such as "pp=".
_PROGRAM_values() {
  local -a alternatives=() names=(${${@:#FILE}:#*[=:]}) prefixes=(${(M)@:#*[=:]})
  (($#names)) && alternatives+=("names:value:($names)")
  (($#prefixes)) && alternatives+=("prefixes:value:compadd -S '' -a prefixes")
  ((${@[(Ie)FILE]})) && alternatives+=('files:file:_files')
  _alternative $alternatives
}

)zsh";

/// Autoloaded, the file is the body of the function; sourced, it only defines it.
constexpr const char* kEnd = R"zsh(
compdef _PROGRAM PROGRAM
if [[ $funcstack[1] == _PROGRAM ]]; then
  _PROGRAM "$@"
fi
)zsh";

std::string commands_function(const CommandDescription& program) {
  std::string script = fmt::format("_{}_commands() {{\n  local -a commands=(\n", program.name);
  for (const CommandDescription& command : program.commands)
    script += "    " + shell_quoted(command.name + ":" + escaped(command.description, ":")) + "\n";
  return script + "  )\n  _describe -t commands command commands\n}\n\n";
}

std::string main_function(const CommandDescription& program) {
  std::string script = fmt::format(
      "_{}() {{\n"
      "  local curcontext=$curcontext state line\n"
      "  local -A opt_args\n"
      "  _arguments -C",
      program.name);
  for (const OptionDescription& option : program.options)
    for (const std::string& spec : option_specs(program, option)) script += " \\\n    " + spec;
  script += fmt::format(
      " \\\n    '1: :_{0}_commands' \\\n    '*:: :->arguments' && return\n"
      "  [[ $state == arguments ]] || return 1\n"
      "  curcontext=${{curcontext%:*:*}}:{0}-$words[1]:\n"
      "  case $words[1] in\n",
      program.name);
  for (const CommandDescription& command : program.commands)
    script += fmt::format("    {})\n      {} ;;\n", command.name, arguments_call(program, command));
  return script + "  esac\n}\n";
}

}  // namespace

std::string bash_completion(const CommandDescription& program) {
  std::vector<std::string> names;
  for (const CommandDescription& command : program.commands) names.push_back(command.name);
  std::string main_function = replaced(kMainFunction, "PROGRAM", program.name);
  main_function =
      replaced(std::move(main_function), "COMMANDS", fmt::format("{}", fmt::join(names, " ")));
  return fmt::format(
             "# bash completion for {0}. Generated by \"{0} completion bash\".\n"
             "# shellcheck shell=bash\n\n",
             program.name) +
         values_function(program) + options_function(program) + main_function;
}

std::string zsh_completion(const CommandDescription& program) {
  return fmt::format(
             "#compdef {0}\n"
             "# zsh completion for {0}. Generated by \"{0} completion zsh\".\n\n",
             program.name) +
         replaced(kValuesFunction, "PROGRAM", program.name) + commands_function(program) +
         main_function(program) + replaced(kEnd, "PROGRAM", program.name);
}

}  // namespace meshwright
