/// A program: parses the command line, runs the command, and turns exceptions into messages and
/// exit codes.
#pragma once

#include <span>

#include "cli/commands/commands.hpp"

namespace meshwright {

/// The whole of main(). Returns the exit code. The only function that prints results and errors.
int run_program(std::span<AddCommand* const> commands, int argument_count, char** argument_values);

}  // namespace meshwright
