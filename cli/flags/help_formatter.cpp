#include "cli/flags/help_formatter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <vector>

namespace meshwright {
namespace {

constexpr std::size_t kLineWidth = 100;
constexpr std::size_t kDescriptionColumn = 30;

/// `text` broken at spaces, each line after the first indented by `indent`.
std::string wrapped(const std::string& text, std::size_t indent) {
  std::string lines;
  std::size_t column = indent;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (std::string value; word == "(default:" && words >> value) word += " " + value;  // together
    const bool is_first = column == indent;
    if (!is_first && column + 1 + word.size() > kLineWidth) {
      lines += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!is_first) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += word.size();
  }
  return lines;
}

/// "  -o, --output FILE        description": the description starts on a line of its own if the
/// name is too long.
std::string row(const std::string& name, const std::string& description) {
  std::string line = "  " + name;
  if (description.empty()) return line + "\n";
  if (line.size() + 2 > kDescriptionColumn)
    line += "\n" + std::string(kDescriptionColumn, ' ');
  else
    line.resize(kDescriptionColumn, ' ');
  return line + wrapped(description, kDescriptionColumn) + "\n";
}

/// "-o, --output FILE", "--straggler RANK:FACTOR..."
std::string signature_of(const CLI::Option& option) {
  std::string text;
  for (const std::string& name : option.get_snames()) text += (text.empty() ? "-" : ", -") + name;
  for (const std::string& name : option.get_lnames()) text += (text.empty() ? "--" : ", --") + name;
  if (option.get_type_size() == 0 || option.get_type_name().empty()) return text;
  const bool repeats = option.get_expected_max() == CLI::detail::expected_max_vector_size &&
                       !option.get_type_name().ends_with("...");
  return text + ' ' + option.get_type_name() + (repeats ? "..." : "");
}

using Options = std::vector<const CLI::Option*>;

std::string options_text(const std::string& title, const Options& options) {
  std::string text = "\n" + title + ":\n";
  for (const CLI::Option* option : options)
    text += row(signature_of(*option), option->get_description());
  return text;
}

std::string arguments_text(const Options& arguments) {
  if (arguments.empty()) return "";
  std::string text = "\nArguments:\n";
  for (const CLI::Option* argument : arguments)
    text += row(help_name(*argument), argument->get_description());
  return text;
}

Options positionals_of(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return option->get_positional(); });
}

std::string usage_of(const CLI::App& app, const std::string& program, bool has_commands) {
  std::string text = fmt::format("Usage: {}{} [OPTIONS]", program, has_commands ? " COMMAND" : "");
  for (const CLI::Option* argument : positionals_of(app)) {
    const std::string name = help_name(*argument);
    text += argument->get_required() ? " " + name : " [" + name + "]";
  }
  return text + "\n";
}

std::string commands_text(const std::vector<const CLI::App*>& commands) {
  if (commands.empty()) return "";
  constexpr std::size_t kColumn = 14;
  std::string text = "\nCommands:\n";
  for (const CLI::App* command : commands)
    text += fmt::format("  {:<{}}{}\n", command->get_name(), kColumn - 2,
                        wrapped(command->get_description(), kColumn));
  return text;
}

std::string groups_text(const CLI::App& app) {
  std::vector<std::string> titles = app.get_groups();
  std::stable_partition(titles.begin(), titles.end(),
                        [](const std::string& title) { return title != kGeneralOptions; });
  std::string text;
  for (const std::string& title : titles) {
    const Options options = app.get_options([&](const CLI::Option* option) {
      return option->get_group() == title && option->nonpositional();
    });
    if (!title.empty() && !options.empty()) text += options_text(title, options);
  }
  return text;
}

class HelpFormatter : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode /*mode*/) const override {
    const std::vector<const CLI::App*> commands = app->get_subcommands(
        [](const CLI::App* command) { return !command->get_group().empty(); });  // not hidden
    std::string text = app->get_description() + "\n\n";
    text += usage_of(*app, name, !commands.empty());
    text += arguments_text(positionals_of(*app));
    text += commands_text(commands) + groups_text(*app);
    if (!app->get_footer().empty()) text += "\n" + app->get_footer() + "\n";
    return text;
  }
};

}  // namespace

std::string help_name(const CLI::Option& option) {
  if (!option.get_positional()) return option.get_name();
  std::string name = option.get_name(true, false);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return name;
}

std::shared_ptr<CLI::FormatterBase> make_help_formatter() {
  return std::make_shared<HelpFormatter>();
}

}  // namespace meshwright
