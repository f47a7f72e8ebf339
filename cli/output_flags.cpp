#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "core/io_file.hpp"

namespace meshwright {

void add_output_flags(CLI::App& command, OutputFlags& flags, const std::string& content) {
  command.add_flag("--json", flags.json, "print JSON instead of text");
  command.add_option("-o,--output", flags.file, "where to write " + content + "; - for stdout")
      ->type_name("FILE");
}

Outcome deliver(std::string text, const OutputFlags& flags) {
  if (flags.file.empty() || flags.file == "-") return {.text = std::move(text)};
  write_file(flags.file, text);
  return {};
}

}  // namespace meshwright
