/// Man pages in roff (man(7) macros): one for the program, one per command.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/manual/command_description.hpp"

namespace meshwright {

struct ManPage {
  std::string file_name;  ///< "meshwright-plan.1"
  std::string text;
};

struct ManPageRelease {
  std::string version;  ///< "0.1.0"
  std::string date;     ///< "2026-11-22"
};

/// meshwright.1 first, then the commands in the order of help.
std::vector<ManPage> man_pages(const CommandDescription& program, const ManPageRelease& release);

/// `text` as roff that prints as it stands: escapes backslashes, hyphens, quotes, control lines and
/// everything outside of ASCII. Text between backquotes is bold.
std::string roff_text(std::string_view text);

}  // namespace meshwright
