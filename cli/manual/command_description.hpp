/// The commands of the program as plain values, read from its parser. Man pages and shell
/// completions are written from them, so both always agree with --help.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace meshwright {

struct OptionDescription {
  std::vector<std::string> flags;  ///< "-o", "--output"; empty: a positional argument
  std::string positional;          ///< name of a positional argument: "plan"
  std::string value;               ///< as help shows it: "NAME|FILE", "{cpu,cuda}"; empty: a switch
  /// Literal values, to be completed by shells. One that ends in ':' or '=' is a prefix: "block:".
  std::vector<std::string> choices;
  bool takes_file = false;  ///< the value is a path, or may be one
  bool is_required = false;
  bool may_repeat = false;   ///< takes several values, or may be given several times
  std::string description;   ///< one sentence or noun phrase, no full stop
  std::string group;         ///< heading in help: "Options"
  std::string needed_flags;  ///< flags that it requires, comma-separated; usually empty
  friend bool operator==(const OptionDescription&, const OptionDescription&) = default;
};

struct CommandDescription {
  std::string name, description;
  std::string footer;  ///< paragraphs after the options; one starts with "Examples:"
  std::vector<OptionDescription> options, positionals;  ///< in the order of help
  std::vector<CommandDescription> commands;
};

/// Options and commands that help hides are left out.
CommandDescription describe(const CLI::App& app);
OptionDescription describe(const CLI::Option& option);

}  // namespace meshwright
