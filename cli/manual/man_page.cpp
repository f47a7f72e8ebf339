#include "cli/manual/man_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "cli/flags/output_flags.hpp"
#include "kernels/backend.hpp"

namespace meshwright {
namespace {

// ---- text to roff -------------------------------------------------------------------------------

/// The code point that starts at `at`, which moves past it. Input is valid UTF-8: our own texts.
char32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at++);
  if (first < 0x80) return first;
  const int following = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
  char32_t point = first & (0x3fu >> following);
  for (int i = 0; i < following && at < text.size(); ++i) point = point << 6 | (byte(at++) & 0x3fu);
  return point;
}

/// One character; `at_line_start`: where a dot or quote would make a control line.
std::string escaped(char32_t c, bool at_line_start) {
  switch (c) {
    case U'\\':
      return "\\e";
    case U'-':
      return "\\-";
    case U'\'':
      return "\\(aq";
    case U'`':
      return "\\(ga";
    case U'~':
      return "\\(ti";
    case U'^':
      return "\\(ha";
    case U'.':
      return at_line_start ? "\\&." : ".";
    default:
      break;
  }
  if (c >= 0x80) return fmt::format("\\[u{:04X}]", static_cast<std::uint32_t>(c));
  return std::string(1, static_cast<char>(c));
}

std::string verbatim(std::string_view text) {
  std::string roff;
  for (std::size_t at = 0; at < text.size();)
    roff += escaped(next_code_point(text, at), roff.empty() || roff.back() == '\n');
  return roff;
}

// ---- pieces of a page ---------------------------------------------------------------------------

std::string bold(std::string_view text) { return "\\fB" + verbatim(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + verbatim(text) + "\\fR"; }

std::string section(std::string_view title) { return fmt::format(".SH {}\n", title); }

std::string entry(const std::string& term, const std::string& description) {
  return ".TP\n" + term + "\n" + (description.empty() ? "\\&" : roff_text(description)) + "\n";
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

/// For the NAME section: the first sentence, lower case and without full stop. Words such as "MFU"
/// keep their capitals.
std::string summary_of(const std::string& description) {
  std::string first =
      description.substr(0, std::min(description.find('\n'), description.find(". ")));
  if (first.ends_with('.')) first.pop_back();
  const auto is_upper = [&](std::size_t i) {
    return i < first.size() && std::isupper(static_cast<unsigned char>(first[i])) != 0;
  };
  if (is_upper(0) && !is_upper(1))
    first[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(first[0])));
  return first;
}

/// "{none,block:N}" or "NAME|FILE": literals bold, placeholders italic.
std::string value_text(const OptionDescription& option) {
  constexpr std::string_view kSeparators = "{},|";
  std::string roff;
  for (std::size_t begin = 0; begin < option.value.size();) {
    if (kSeparators.find(option.value[begin]) != std::string_view::npos) {
      roff += option.value[begin++];
      continue;
    }
    const std::size_t end =
        std::min(option.value.find_first_of(kSeparators, begin), option.value.size());
    const std::string piece = option.value.substr(begin, end - begin);
    const auto found = std::find(option.choices.begin(), option.choices.end(), piece);
    roff += found == option.choices.end() ? italic(piece) : bold(piece);
    begin = end;
  }
  return roff;
}

std::string option_entry(const OptionDescription& option) {
  std::string term;
  for (const std::string& flag : option.flags) term += (term.empty() ? "" : ", ") + bold(flag);
  if (option.flags.empty()) term = italic(upper(option.positional));
  if (!option.flags.empty() && !option.value.empty()) term += " " + value_text(option);
  const std::string needs = option.needed_flags.empty()
                                ? std::string()
                                : fmt::format(" (requires {})", option.needed_flags);
  return entry(term, option.description + needs);
}

/// Options under the heading of their group; a single group needs none.
std::string options_section(const CommandDescription& command) {
  std::string roff = section("OPTIONS");
  for (const OptionDescription& argument : command.positionals) roff += option_entry(argument);
  const std::vector<OptionDescription>& options = command.options;
  const bool has_groups = std::any_of(options.begin(), options.end(), [&](const auto& option) {
    return option.group != options.front().group;
  });
  std::vector<std::string> done;
  for (const OptionDescription& first : options) {
    if (std::find(done.begin(), done.end(), first.group) != done.end()) continue;
    done.push_back(first.group);
    if (has_groups) roff += fmt::format(".SS \"{}\"\n", verbatim(first.group));
    for (const OptionDescription& option : options)
      if (option.group == first.group) roff += option_entry(option);
  }
  return roff;
}

// ---- the text after the options -----------------------------------------------------------------

std::vector<std::string> paragraphs_of(const std::string& text) {
  std::vector<std::string> paragraphs;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find("\n\n", begin), text.size());
    if (end > begin) paragraphs.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of('\n', end);
  }
  return paragraphs;
}

bool is_examples(const std::string& paragraph) {
  return paragraph.starts_with("Examples:\n") || paragraph.starts_with("Example:\n");
}

/// Indented lines are tables or code: they are printed as they stand.
std::string paragraph_text(const std::string& paragraph) {
  const bool is_set = paragraph.starts_with(' ') || paragraph.find("\n ") != std::string::npos;
  return is_set ? ".PP\n.EX\n" + verbatim(paragraph) + "\n.EE\n"
                : ".PP\n" + roff_text(paragraph) + "\n";
}

/// Without the two blanks that indent every command in help.
std::string examples_roff(const std::string& paragraph) {
  std::string roff = ".EX\n";
  for (std::size_t begin = paragraph.find('\n') + 1; begin < paragraph.size();) {
    const std::size_t end = std::min(paragraph.find('\n', begin), paragraph.size());
    std::string line = paragraph.substr(begin, end - begin);
    if (line.starts_with("  ")) line.erase(0, 2);
    roff += verbatim(line) + "\n";
    begin = end + 1;
  }
  return roff + ".EE\n";
}

// ---- pages --------------------------------------------------------------------------------------

std::string heading(const std::string& name, const ManPageRelease& release) {
  return fmt::format(
      ".\\\" Generated by \"meshwright man\\-pages\" from the help of the program.\n"
      ".TH \"{}\" 1 \"{}\" \"Meshwright {}\" \"Meshwright manual\"\n",
      verbatim(upper(name)), release.date, release.version);
}

std::string name_section(const std::string& name, const CommandDescription& command) {
  return section("NAME") +
         fmt::format("{} \\- {}\n", verbatim(name), roff_text(summary_of(command.description)));
}

std::string reference(const std::string& page) { return bold(page) + "(1)"; }

std::string exit_status_section() {
  static constexpr std::array<std::pair<int, const char*>, 7> kMeanings{{
      {kExitDone, "success"},
      {kExitNoPlanFits,
       "no plan fits, the error exceeds `compare --max-error`, or a rank of `run` failed"},
      {kExitUsage, "invalid command line"},
      {kExitBadInput, "invalid input: a file, a name, or an impossible combination of settings"},
      {kExitMissingEnvironment, "system error: a device, a library or a file is not available"},
      {kExitOurBug, "internal error"},
      {kExitInterrupted, "interrupted"},
  }};
  std::string roff = section("EXIT STATUS");
  for (const auto& [code, meaning] : kMeanings) roff += entry(bold(std::to_string(code)), meaning);
  return roff;
}

std::string environment_section() {
  std::string plugins;
  for (const BackendTraits& backend : kBackends)
    if (backend.plugin != nullptr)
      plugins +=
          entry(bold(backend.variable),
                fmt::format("GPU plug-in to load instead of the installed {}", backend.plugin));
  return section("ENVIRONMENT") +
         entry(bold("MESHWRIGHT_CALIBRATION"),
               "calibration file of the cluster `this-machine`, which `meshwright calibrate` "
               "writes") +
         plugins + entry(bold("XDG_DATA_HOME"), "base directory of the default calibration file") +
         section("FILES") +
         entry(italic("~/.local/share/meshwright/this-machine.calib.json"),
               "default calibration file of the cluster `this-machine`");
}

ManPage program_page(const CommandDescription& program, const ManPageRelease& release) {
  std::string roff = heading(program.name, release) + name_section(program.name, program);
  roff += section("SYNOPSIS") + bold(program.name) + " " + italic("COMMAND") + " [" +
          italic("OPTIONS") + "]\n";
  roff += section("DESCRIPTION") + roff_text(program.description) + "\n";
  for (const std::string& paragraph : paragraphs_of(program.footer))
    if (!is_examples(paragraph)) roff += paragraph_text(paragraph);
  roff += section("COMMANDS");
  for (const CommandDescription& command : program.commands)
    roff += entry(reference(program.name + "-" + command.name), command.description);
  roff += options_section(program) + exit_status_section() + environment_section();
  for (const std::string& paragraph : paragraphs_of(program.footer))
    if (is_examples(paragraph)) roff += section("EXAMPLES") + examples_roff(paragraph);
  return {program.name + ".1", roff};
}

ManPage command_page(const CommandDescription& program, const CommandDescription& command,
                     const ManPageRelease& release) {
  const std::string name = program.name + "-" + command.name;
  std::string roff = heading(name, release) + name_section(name, command);
  roff += section("SYNOPSIS") + bold(program.name + " " + command.name) + " [" + italic("OPTIONS") +
          "]";
  for (const OptionDescription& argument : command.positionals)
    roff += fmt::format(fmt::runtime(argument.is_required ? " {}" : " [{}]"),
                        italic(upper(argument.positional)));
  roff += "\n" + section("DESCRIPTION") + roff_text(command.description) + "\n";
  std::string examples;
  for (const std::string& paragraph : paragraphs_of(command.footer)) {
    if (is_examples(paragraph))
      examples += section("EXAMPLES") + examples_roff(paragraph);
    else
      roff += paragraph_text(paragraph);
  }
  roff += options_section(command) + examples;
  roff += section("SEE ALSO") + reference(program.name) + "\n";
  return {name + ".1", roff};
}

}  // namespace

std::string roff_text(std::string_view text) {
  std::string roff;
  bool is_bold = false;
  for (std::size_t at = 0; at < text.size();) {
    const bool at_line_start = roff.empty() || roff.back() == '\n';
    const bool is_paired = is_bold || text.find('`', at + 1) != std::string_view::npos;
    if (text[at] == '`' && is_paired) {
      roff += is_bold ? "\\fR" : "\\fB";
      is_bold = !is_bold;
      ++at;
    } else {
      roff += escaped(next_code_point(text, at), at_line_start);
    }
  }
  return roff;
}

std::vector<ManPage> man_pages(const CommandDescription& program, const ManPageRelease& release) {
  std::vector<ManPage> pages{program_page(program, release)};
  for (const CommandDescription& command : program.commands)
    pages.push_back(command_page(program, command, release));
  return pages;
}

}  // namespace meshwright
