#include "cli/program/program.hpp"

#include <fmt/format.h>

#include <csignal>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "cli/flags/output_flags.hpp"
#include "cli/flags/usage_error.hpp"
#include "cli/program/call_program.hpp"
#include "cli/program/error_output.hpp"
#include "cli/run/run_failed.hpp"
#include "cli/terminal/interrupt.hpp"
#include "cli/terminal/standard_streams.hpp"
#include "core/base/error.hpp"
#include "core/formats/file.hpp"

namespace meshwright {
namespace {

int print_outcome(const Outcome& outcome) {
  if (!outcome.text.empty()) write_file("-", outcome.text);
  print_to_stderr(outcome.notes);
  if (outcome.leaves_a_thread) end_at_once(outcome.exit_code);
  return outcome.exit_code;
}

/// Also of a command line that cannot be parsed.
bool asks_for_json(const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i] == "--json" || arguments[i] == "--format=json" ||
        (arguments[i] == "--format" && i + 1 < arguments.size() && arguments[i + 1] == "json"))
      return true;
  return false;
}

}  // namespace

int run_program(std::span<AddCommand* const> commands, int argument_count, char** argument_values) {
  reserve_standard_streams();
  // A write beyond the file size limit, or to a pipe without a reader, is an error, not the end.
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  watch_for_interrupts();
  const std::vector<std::string> arguments(argument_values + 1, argument_values + argument_count);
  const bool json = asks_for_json(arguments);
  try {
    return print_outcome(call_program(commands, arguments));
  } catch (const UsageError& error) {
    return report_errors("input", error.diagnostics(), json, kExitUsage);
  } catch (const InputError& error) {
    return report_errors("input", error.diagnostics(), json, kExitBadInput);
  } catch (const RunFailed& error) {
    return report_failed_run(error, json);
  } catch (const RuntimeFailure& error) {
    return report_error("environment", error.diagnostic(), json, kExitMissingEnvironment);
  } catch (const BrokenPipe&) {  // ends like other programs in a pipe
    std::signal(SIGPIPE, SIG_DFL);
    return std::raise(SIGPIPE);
  } catch (const Interrupted&) {
    print_to_stderr("interrupted: no results written\n");
    return kExitInterrupted;
  } catch (const std::bad_alloc&) {
    return report_error("environment",
                        {"meshwright", "out of memory",
                         "remove --all-ranks and --contention, or use a machine with more memory"},
                        json, kExitMissingEnvironment);
  } catch (const std::system_error& error) {  // of std::thread and std::filesystem
    const bool no_thread = error.code() == std::errc::resource_unavailable_try_again;
    return report_error(
        "environment",
        {"meshwright", no_thread ? "cannot start a thread" : error.what(),
         no_thread ? "check the limits on processes and memory (ulimit -u, ulimit -v)" : ""},
        json, kExitMissingEnvironment);
  } catch (const std::exception& error) {
    return report_error("internal",
                        {"internal error", error.what(),
                         "report this bug, with the command line and the input files"},
                        json, kExitOurBug);
  }
}

}  // namespace meshwright
