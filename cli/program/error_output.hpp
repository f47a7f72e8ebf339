/// Errors on standard error and, with --json, on standard output.
#pragma once

#include <span>
#include <string_view>

#include "cli/run/run_failed.hpp"
#include "core/base/error.hpp"

namespace meshwright {

/// Prints the errors as text and, if asked for, as JSON, and returns `exit_code`. `kind` is that of
/// the JSON: "input", "environment", "run" or "internal". The exit code stays that of the first
/// error if standard output cannot be written either.
int report_errors(std::string_view kind, std::span<const Diagnostic> diagnostics, bool json,
                  int exit_code);
int report_error(std::string_view kind, const Diagnostic& diagnostic, bool json, int exit_code);
/// Does not return if a thread of the run could not be stopped.
int report_failed_run(const RunFailed& error, bool json);

/// Runs no destructors: a thread that could not be stopped may still use the objects.
[[noreturn]] void end_at_once(int exit_code);

}  // namespace meshwright
