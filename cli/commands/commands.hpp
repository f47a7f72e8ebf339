/// The commands of the program. Commands return text and an exit code, or throw; only
/// run_program() prints.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "cli/flags/output_flags.hpp"

namespace CLI {
class App;
}

namespace meshwright {

struct Command {
  CLI::App* parser = nullptr;
  std::function<Outcome()> run;  ///< after the command line was parsed
};

/// `add` adds the command and its options, whose values `run` receives.
template <class Flags, class Run>
Command make_command(CLI::App& app, CLI::App* (*add)(CLI::App&, Flags&), Run run) {
  auto flags = std::make_shared<Flags>();
  CLI::App* parser = add(app, *flags);
  return {parser, [flags, run] { return run(std::as_const(*flags)); }};
}

/// Adds a command to the program; each is defined in command_NAME.cpp.
using AddCommand = Command(CLI::App& app);
AddCommand plan_command, partition_command, simulate_command, run_command, convert_command,
    compare_command, calibrate_command, fit_command, explain_command, report_command, sweep_command,
    validate_command, schedule_command, show_command, export_command, import_command,
    doctor_command, completion_command, man_pages_command;
/// sweep without ranks of MPI.
AddCommand local_sweep_command;

/// In the order of help, which does not list man-pages: the build calls it.
inline constexpr AddCommand* kCommands[]{
    &plan_command,    &partition_command, &simulate_command,   &run_command,      &convert_command,
    &compare_command, &calibrate_command, &fit_command,        &explain_command,  &report_command,
    &sweep_command,   &validate_command,  &schedule_command,   &show_command,     &export_command,
    &import_command,  &doctor_command,    &completion_command, &man_pages_command};

/// Those that need neither kernels nor ranks: of the Python package, and of the program that
/// `./dev run` builds for them in less time.
inline constexpr AddCommand* kPlanningCommands[]{
    &plan_command,     &partition_command, &simulate_command, &compare_command,
    &fit_command,      &explain_command,   &report_command,   &local_sweep_command,
    &validate_command, &schedule_command,  &show_command,     &export_command,
    &import_command};

}  // namespace meshwright
