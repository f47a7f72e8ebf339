/// The program: parses the command line, runs the command, and turns exceptions into messages and
/// exit codes.
#pragma once

#include <string>
#include <vector>

namespace meshwright {

/// `arguments` are those behind the name of the program. Returns the exit code. The only function
/// that prints results and errors.
int run_program(const std::vector<std::string>& arguments);

}  // namespace meshwright
