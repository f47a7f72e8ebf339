#include <CLI/CLI.hpp>

#include "cli/flags/help_formatter.hpp"
#include "cli/flags/output_flags.hpp"
#include "core/formats/file.hpp"

namespace meshwright {

void add_output_flags(CLI::App& command, OutputFlags& flags, const std::string& content) {
  const OptionGroup group(command, kGeneralOptions);
  command.get_help_ptr()->group(kGeneralOptions);
  command.add_flag("--json", flags.json, "print the result as JSON");
  add_value(command, "-o,--output", flags.file, "FILE",
            "write " + content + " to FILE; - for standard output");
}

Outcome deliver(std::string text, const OutputFlags& flags) {
  if (flags.file.empty() || flags.file == "-") return {.text = std::move(text)};
  write_file(flags.file, text);
  return {};
}

}  // namespace meshwright
