/// `man-pages`, which help does not list: the build calls it.
#include <CLI/CLI.hpp>

#include "cli/commands/commands.hpp"
#include "cli/flags/help_formatter.hpp"
#include "cli/manual/man_page.hpp"
#include "core/formats/file.hpp"

namespace meshwright {
namespace {

struct ManPagesFlags {
  std::string directory, date;
};

CLI::App* add_man_pages_command(CLI::App& app, ManPagesFlags& flags) {
  CLI::App* command = app.add_subcommand("man-pages", "Write the man pages.")->group("");
  command->add_option("directory", flags.directory, "existing directory")->required();
  add_value(*command, "--date", flags.date, "YYYY-MM-DD", "date in the pages");
  return command;
}

Outcome run_man_pages(const CLI::App& app, const ManPagesFlags& flags) {
  const ManPageRelease release{.version = MESHWRIGHT_VERSION, .date = flags.date};
  for (const ManPage& page : man_pages(describe(app), release))
    write_file(flags.directory + "/" + page.file_name, page.text);
  return {};
}

}  // namespace

Command man_pages_command(CLI::App& app) {
  return make_command(app, add_man_pages_command,
                      [&app](const ManPagesFlags& flags) { return run_man_pages(app, flags); });
}

}  // namespace meshwright
