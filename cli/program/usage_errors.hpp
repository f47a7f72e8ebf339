/// What is wrong with a command line that CLI11 could not parse.
#pragma once

#include <span>
#include <string>

#include "core/base/error.hpp"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace meshwright {

/// Without a command, or with an unknown one.
Diagnostic command_diagnostic(const CLI::App& app, std::span<const std::string> arguments);

/// Names the option or the argument, with what the command expects or the nearest name.
Diagnostic usage_diagnostic(const CLI::ParseError& error, const CLI::App& app,
                            std::span<const std::string> arguments);

}  // namespace meshwright
