#include "cli/manual/command_description.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>

#include "cli/flags/help_formatter.hpp"

namespace meshwright {
namespace {

/// "cpu", "cuda" of "{cpu,cuda}"; "NAME", "FILE" of "NAME|FILE".
std::vector<std::string> alternatives_of(const std::string& value) {
  const bool is_set = value.size() > 2 && value.starts_with('{') && value.ends_with('}');
  const std::string list = is_set ? value.substr(1, value.size() - 2) : value;
  const char separator = is_set ? ',' : '|';
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(separator, begin), list.size());
    if (end > begin) parts.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// CLI11 appends what validators say: "NAME:{cpu,cuda}" → "{cpu,cuda}", "N:INT in [1 - 8]" → "N".
std::string value_of_type(const std::string& type) {
  if (const std::size_t set = type.find(":{"); set != std::string::npos)
    return type.substr(set + 1);
  const std::size_t range = type.find(" in [");
  return range == std::string::npos ? type : type.substr(0, type.rfind(':', range));
}

/// Of "none", "block:N", "FILE": a literal, the literal prefix in front of a placeholder, or
/// nothing. Placeholders are upper case.
std::string literal_of(const std::string& piece) {
  const auto is_upper = [](unsigned char c) { return std::isupper(c) != 0; };
  const auto upper = std::find_if(piece.begin(), piece.end(), is_upper);
  if (upper == piece.end()) return piece;
  const bool is_placeholder =
      upper == piece.begin() || (*(upper - 1) != ':' && *(upper - 1) != '=');
  return is_placeholder ? std::string() : std::string(piece.begin(), upper);
}

bool names_a_path(const std::string& piece) {
  return piece == "FILE" || piece == "PATH" || piece == "DIR" || piece == "DIRECTORY";
}

std::string needed_flags_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const CLI::Option* needed : option.get_needs())
    if (!needed->get_lnames().empty()) names.push_back("--" + needed->get_lnames().front());
  std::sort(names.begin(), names.end());
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

OptionDescription describe(const CLI::Option& option) {
  OptionDescription d;
  for (const std::string& name : option.get_snames()) d.flags.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) d.flags.push_back("--" + name);
  if (d.flags.empty()) d.positional = option.get_name(true);
  d.description = option.get_description();
  d.group = option.get_group();
  d.is_required = option.get_required();
  d.needed_flags = needed_flags_of(option);
  if (option.get_items_expected_max() == 0) return d;  // a switch
  d.value = value_of_type(option.get_type_name());
  d.may_repeat = option.get_items_expected_max() > 1 ||
                 option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  for (const std::string& piece : alternatives_of(d.value)) {
    if (names_a_path(piece)) d.takes_file = true;
    if (std::string literal = literal_of(piece); !literal.empty())
      d.choices.push_back(std::move(literal));
  }
  return d;
}

CommandDescription describe(const CLI::App& app) {
  CommandDescription d;
  d.name = app.get_name();
  d.description = app.get_description();
  d.footer = app.get_footer();
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    OptionDescription described = describe(*option);
    (described.flags.empty() ? d.positionals : d.options).push_back(std::move(described));
  }
  std::stable_partition(d.options.begin(), d.options.end(), [](const OptionDescription& option) {
    return option.group != kGeneralOptions;
  });
  const auto is_shown = [](const CLI::App* command) {
    return !command->get_name().empty() && !command->get_group().empty();
  };
  for (const CLI::App* command : app.get_subcommands(is_shown))
    d.commands.push_back(describe(*command));
  return d;
}

}  // namespace meshwright
