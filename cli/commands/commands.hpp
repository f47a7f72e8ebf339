/// The commands of the program: each adds its flags to the parser, and runs with the parsed values.
/// Commands return text and an exit code, or throw; only main() prints.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/flags/output_flags.hpp"
#include "cli/flags/strategy_flags.hpp"
#include "cli/flags/variation_flags.hpp"
#include "cli/job/job.hpp"
#include "cli/run/run_flags.hpp"
#include "cli/schedule/schedule_flags.hpp"
#include "core/trainer/launch_text.hpp"

namespace CLI {
class App;
}

namespace meshwright {

struct PlanFlags {
  SourceFlags sources;
  std::optional<int> gpus, top, threads;
  bool fix = false, why = false;
  StrategyFlags strategy;
  OutputFlags output;
};
CLI::App* add_plan_command(CLI::App& app, PlanFlags& flags);
Outcome run_plan(const PlanFlags& flags);

struct SimulateFlags {
  JobFlags job;
  bool all_ranks = false, contention = false;
  std::optional<int> steps;  ///< in the timeline of a flushless schedule
  VariationFlags variation;
  FailureFlags failures;
  OutputFlags output;
};
CLI::App* add_simulate_command(CLI::App& app, SimulateFlags& flags);
Outcome run_simulate(const SimulateFlags& flags);

CLI::App* add_run_command(CLI::App& app, RunFlags& flags);
Outcome run_run(const RunFlags& flags);

struct CompareFlags {
  std::string predicted, measured, max_error;  ///< "10%"; empty: no limit
  OutputFlags output;
};
CLI::App* add_compare_command(CLI::App& app, CompareFlags& flags);
Outcome run_compare(const CompareFlags& flags);

struct CalibrateFlags {
  bool quick = false;
  std::string device = "cpu";
  OutputFlags output;
};
CLI::App* add_calibrate_command(CLI::App& app, CalibrateFlags& flags);
Outcome run_calibrate(const CalibrateFlags& flags);

struct FitFlags {
  std::string kernels, collectives, cluster, device, like;
  std::optional<double> holdout;
  OutputFlags output;
};
CLI::App* add_fit_command(CLI::App& app, FitFlags& flags);
Outcome run_fit(const FitFlags& flags);

struct LaunchChoice {
  std::optional<LaunchTarget> target;  ///< absent: that of the plan's trainer
};
struct ExplainFlags {
  JobFlags job;
  std::optional<LaunchChoice> launch;  ///< print launch options instead
  FailureFlags failures;
  OutputFlags output;
};
CLI::App* add_explain_command(CLI::App& app, ExplainFlags& flags);
Outcome run_explain(const ExplainFlags& flags);

struct SweepFlags {
  SourceFlags sources;
  std::string show = "step";
  std::optional<int> gpus, threads;
  std::vector<std::string> over;
  StrategyFlags strategy;
  OutputFlags output;
};
CLI::App* add_sweep_command(CLI::App& app, SweepFlags& flags);
Outcome run_sweep(const SweepFlags& flags);

struct ValidateFlags {
  std::vector<std::string> files, sets;
  bool rows = false;
  std::string table = "text", csv, baseline, write_baseline, write_errors;
  std::optional<int> threads, fit_steps;
  OutputFlags output;
};
CLI::App* add_validate_command(CLI::App& app, ValidateFlags& flags);
Outcome run_validate(const ValidateFlags& flags);

CLI::App* add_schedule_command(CLI::App& app, ScheduleFlags& flags);
Outcome run_schedule(const ScheduleFlags& flags);

struct ShowFlags {
  std::string what;
  bool lowering = false;
  OutputFlags output;
};
CLI::App* add_show_command(CLI::App& app, ShowFlags& flags);
Outcome run_show(const ShowFlags& flags);

struct ExportFlags {
  std::string timeline, format;
  OutputFlags output;
};
CLI::App* add_export_command(CLI::App& app, ExportFlags& flags);
Outcome run_export(const ExportFlags& flags);

struct ImportFlags {
  std::string file, format = "auto", like, collective;
  std::optional<int> nodes, gpus_per_node;
  OutputFlags output;
};
CLI::App* add_import_command(CLI::App& app, ImportFlags& flags);
Outcome run_import(const ImportFlags& flags);

struct DoctorFlags {
  std::string device = "cpu";  ///< must be usable: "cpu" or "cuda"
  OutputFlags output;
};
CLI::App* add_doctor_command(CLI::App& app, DoctorFlags& flags);
Outcome run_doctor(const DoctorFlags& flags);

struct CompletionFlags {
  std::string shell;
};
CLI::App* add_completion_command(CLI::App& app, CompletionFlags& flags);
/// `app`: the whole program, with all commands.
Outcome run_completion(const CLI::App& app, const CompletionFlags& flags);

/// Hidden: the build calls it.
struct ManPagesFlags {
  std::string directory, date;
};
CLI::App* add_man_pages_command(CLI::App& app, ManPagesFlags& flags);
/// `app`: the whole program, with all commands.
Outcome run_man_pages(const CLI::App& app, const ManPagesFlags& flags);

}  // namespace meshwright
