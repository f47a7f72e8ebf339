/// A call of the program without its printing, for programs and for the Python package.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/commands/commands.hpp"

namespace meshwright {

/// Parses the arguments, those behind the name of the program, and runs one of the commands. The
/// text of --help and --version is an outcome too. Throws UsageError if they cannot be parsed, and
/// what the command throws.
Outcome call_program(std::span<AddCommand* const> commands,
                     const std::vector<std::string>& arguments);

}  // namespace meshwright
