/// meshwright: parse the command line, run the command, turn what it throws into a message and an
/// exit code. The only place that prints results and errors.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>

#include "cli/commands.hpp"
#include "cli/interrupt.hpp"
#include "cli/run_failed.hpp"
#include "core/error.hpp"
#include "core/io_file.hpp"

namespace meshwright {
namespace {

struct AllFlags {
  PlanFlags plan;
  SimulateFlags simulate;
  RunFlags run;
  CompareFlags compare;
  CalibrateFlags calibrate;
  ExplainFlags explain;
  SweepFlags sweep;
  ScheduleFlags schedule;
  ShowFlags show;
  ExportFlags export_timeline;
  ImportFlags import_file;
  DoctorFlags doctor;
};

struct Command {
  CLI::App* parser;
  std::function<Outcome()> run;
};

std::vector<Command> add_commands(CLI::App& app, AllFlags& flags) {
  return {
      {add_plan_command(app, flags.plan), [&] { return run_plan(flags.plan); }},
      {add_simulate_command(app, flags.simulate), [&] { return run_simulate(flags.simulate); }},
      {add_run_command(app, flags.run), [&] { return run_run(flags.run); }},
      {add_compare_command(app, flags.compare), [&] { return run_compare(flags.compare); }},
      {add_calibrate_command(app, flags.calibrate), [&] { return run_calibrate(flags.calibrate); }},
      {add_explain_command(app, flags.explain), [&] { return run_explain(flags.explain); }},
      {add_sweep_command(app, flags.sweep), [&] { return run_sweep(flags.sweep); }},
      {add_schedule_command(app, flags.schedule), [&] { return run_schedule(flags.schedule); }},
      {add_show_command(app, flags.show), [&] { return run_show(flags.show); }},
      {add_export_command(app, flags.export_timeline),
       [&] { return run_export(flags.export_timeline); }},
      {add_import_command(app, flags.import_file), [&] { return run_import(flags.import_file); }},
      {add_doctor_command(app, flags.doctor), [&] { return run_doctor(flags.doctor); }},
  };
}

// ---- errors -------------------------------------------------------------------------------------

/// Every long flag of a command, for suggestions.
std::vector<std::string> flags_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

/// What CLI11 found wrong, in our words.
Diagnostic usage_diagnostic(const CLI::ParseError& error, const CLI::App& app,
                            std::span<const std::string> arguments) {
  const auto parsed = app.get_subcommands();
  if (parsed.empty()) {
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
      names.push_back(command->get_name());
    if (arguments.empty() || arguments.front().starts_with('-'))
      return {"command line", "a command is needed", fmt::format("{}", fmt::join(names, ", "))};
    return {arguments.front(), "there is no such command", suggest(arguments.front(), names)};
  }
  const CLI::App& command = *parsed.front();
  const std::vector<std::string> extras = command.remaining();
  if (!extras.empty() && dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::string flag = extras.front().substr(0, extras.front().find('='));
    const std::vector<std::string> near = nearest_names(flag, flags_of(command), 1);
    return {extras.front(), fmt::format("'{}' does not take this", command.get_name()),
            near.empty() ? fmt::format("see meshwright {} --help", command.get_name())
                         : fmt::format("did you mean '{}'?", near.front())};
  }
  return {"meshwright " + command.get_name(), error.what(),
          fmt::format("see meshwright {} --help", command.get_name())};
}

using Json = nlohmann::ordered_json;

Json json_of(const char* kind, const Diagnostic& d) {
  return {{"kind", kind}, {"where", d.where}, {"what", d.what}, {"hint", d.hint}};
}

void print_json_errors(const Json& all) {
  const Json json{{"schema", 1}, {"error", all.front()}, {"errors", all}};
  fmt::print("{}\n", json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void print_json_error(const char* kind, std::span<const Diagnostic> diagnostics) {
  Json all = Json::array();
  for (const Diagnostic& d : diagnostics) all.push_back(json_of(kind, d));
  print_json_errors(all);
}

/// Text to standard error; with --json the same as JSON on standard output.
int report(const char* kind, std::span<const Diagnostic> diagnostics, bool json, int exit_code) {
  for (const Diagnostic& d : diagnostics) fmt::print(stderr, "{}", format(d));
  if (json) print_json_error(kind, diagnostics);
  return exit_code;
}

int report(const char* kind, const Diagnostic& diagnostic, bool json, int exit_code) {
  return report(kind, std::span(&diagnostic, 1), json, exit_code);
}

/// Whatever a thread that is left may do meanwhile: no destructor runs.
[[noreturn]] void end_at_once(int exit_code) {
  std::fflush(nullptr);
  std::_Exit(exit_code);
}

int report(const RunFailed& error, bool json) {
  const RunFailed::What& what = error.details();
  fmt::print(stderr, "{}", format(error.diagnostic()));
  if (json) {
    Json failure = json_of("run", error.diagnostic());
    failure["rank"] = what.rank.value;
    failure["task"] = what.task.empty() ? Json() : Json(what.task);
    print_json_errors(Json::array({failure}));
  }
  if (what.leaves_a_thread) end_at_once(kExitRunFailed);
  return kExitRunFailed;
}

// ---- running ------------------------------------------------------------------------------------

int run_command(CLI::App& app, const std::vector<Command>& commands,
                const std::vector<std::string>& arguments, bool json) {
  try {
    // CLI11 takes them last first.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::Success& help_or_version) {
    return app.exit(help_or_version);
  } catch (const CLI::ParseError& error) {
    return report("input", usage_diagnostic(error, app, arguments), json, kExitUsage);
  }
  for (const Command& command : commands) {
    if (!command.parser->parsed()) continue;
    const Outcome outcome = command.run();
    if (!outcome.text.empty()) write_file("-", outcome.text);
    if (!outcome.notes.empty()) fmt::print(stderr, "{}", outcome.notes);
    if (outcome.leaves_a_thread) end_at_once(outcome.exit_code);
    return outcome.exit_code;
  }
  return report("input", {"command line", "a command is needed", "see meshwright --help"}, json,
                kExitUsage);
}

int run(const std::vector<std::string>& arguments) {
  CLI::App app("Plans and simulates parallel training of large models.", "meshwright");
  app.set_version_flag("--version", "meshwright " MESHWRIGHT_VERSION);
  app.footer("Each command has its own --help, with examples.");
  app.require_subcommand(0, 1);
  app.get_formatter()->column_width(34);
  AllFlags flags;
  const std::vector<Command> commands = add_commands(app, flags);
  const bool json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
  try {
    return run_command(app, commands, arguments, json);
  } catch (const UsageError& error) {
    return report("input", error.diagnostics(), json, kExitUsage);
  } catch (const InputError& error) {
    return report("input", error.diagnostics(), json, kExitBadInput);
  } catch (const RunFailed& error) {
    return report(error, json);
  } catch (const RuntimeFailure& error) {
    return report("environment", error.diagnostic(), json, kExitMissingEnvironment);
  } catch (const Interrupted&) {
    fmt::print(stderr, "interrupted; nothing was written\n");
    return kExitInterrupted;
  } catch (const std::bad_alloc&) {
    return report("environment",
                  {"memory", "there is not enough of it for this job",
                   "leave out --all-ranks and --contention, or use a machine with more"},
                  json, kExitMissingEnvironment);
  } catch (const std::exception& error) {
    return report("internal",
                  {"meshwright", error.what(),
                   "this is a bug: please report it with the command line and the files"},
                  json, kExitOurBug);
  }
}

}  // namespace
}  // namespace meshwright

int main(int argument_count, char** arguments) {
  meshwright::watch_for_interrupts();
  return meshwright::run(std::vector<std::string>(arguments + 1, arguments + argument_count));
}
