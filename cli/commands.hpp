/// The commands of the program: each adds its flags to the parser, and runs with what was parsed.
/// Commands return text and an exit code and throw what main() turns into messages; only main()
/// prints.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/checkpoint_flags.hpp"
#include "cli/job.hpp"
#include "cli/strategy_flags.hpp"
#include "cli/variation_flags.hpp"
#include "core/launch_text.hpp"

namespace CLI {
class App;
}

namespace meshwright {

inline constexpr int kExitDone = 0;
inline constexpr int kExitNoPlanFits = 1;
inline constexpr int kExitRunFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitBadInput = 3;
inline constexpr int kExitMissingEnvironment = 4;
inline constexpr int kExitOurBug = 5;
inline constexpr int kExitInterrupted = 130;

struct Outcome {
  std::string text;  ///< for standard output
  int exit_code = kExitDone;
  std::string notes = {};  ///< for standard error, beside a result: what it leaves out
  /// A thread is left that could not be stopped: the process has to end as it is.
  bool leaves_a_thread = false;
};

/// --json and -o, the same for all.
struct OutputFlags {
  bool json = false;
  std::string file;  ///< empty: not given; "-": standard output
};
/// `content` says what -o writes: "the best plan".
void add_output_flags(CLI::App& command, OutputFlags& flags, const std::string& content);
/// For commands whose result is one text: it goes to the file if one is given.
Outcome deliver(std::string text, const OutputFlags& flags);

struct PlanFlags {
  std::string model, cluster, calibration;
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
  std::optional<int> steps;  ///< of the timeline, without a flush
  VariationFlags variation;
  FailureFlags failures;
  OutputFlags output;
};
CLI::App* add_simulate_command(CLI::App& app, SimulateFlags& flags);
Outcome run_simulate(const SimulateFlags& flags);

struct RunFlags {
  JobFlags job;
  std::string ranks = "threads", clock = "virtual", links, kernels = "cpu", device = "cpu";
  std::string text, tokens, token_type = "uint16";
  std::string patience, fault;  ///< text until it is needed
  std::string activity;         ///< file for the kernels and copies of a GPU
  std::optional<int> steps, seed;
  bool all_steps = false;  ///< in the timeline; else the median one
  bool live = false;       ///< write it after every step
  CheckpointFlags checkpoints;
  OutputFlags output;
};
CLI::App* add_run_command(CLI::App& app, RunFlags& flags);
Outcome run_run(const RunFlags& flags);

struct CompareFlags {
  std::string predicted, measured, max_error;  ///< "10%"; empty: not judged
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

struct ExplainFlags {
  JobFlags job;
  std::optional<LaunchTarget> launch;  ///< the plan in that trainer's words, instead
  FailureFlags failures;
  OutputFlags output;
};
CLI::App* add_explain_command(CLI::App& app, ExplainFlags& flags);
Outcome run_explain(const ExplainFlags& flags);

struct SweepFlags {
  std::string model, cluster, calibration, show = "step";
  std::optional<int> gpus, threads;
  std::vector<std::string> over;
  StrategyFlags strategy;
  OutputFlags output;
};
CLI::App* add_sweep_command(CLI::App& app, SweepFlags& flags);
Outcome run_sweep(const SweepFlags& flags);

/// Times are text until --unit is known.
struct ScheduleFlags {
  std::string name;
  std::optional<int> stages, microbatches, chunks, slices, cap;
  std::vector<std::string> forward{"1"}, backward_input{"1"}, backward_weight{"1"}, latency{"0"},
      output_scores{"0"}, output_gradients{"0"};
  std::string barrier = "0", unit = "ms", objective = "makespan", activation, check_file;
  std::string csv_file, csv_content = "compute", csv_dialect = "current";
  std::string placement;  ///< of auto: "loop", "v" or "wave"; empty: the better one
  OutputFlags output;
};
CLI::App* add_schedule_command(CLI::App& app, ScheduleFlags& flags);
Outcome run_schedule(const ScheduleFlags& flags);

struct ShowFlags {
  std::string what;
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
  std::optional<int> nodes;
  OutputFlags output;
};
CLI::App* add_import_command(CLI::App& app, ImportFlags& flags);
Outcome run_import(const ImportFlags& flags);

struct DoctorFlags {
  std::string device = "cpu";  ///< what must be there: "cuda", a GPU
  OutputFlags output;
};
CLI::App* add_doctor_command(CLI::App& app, DoctorFlags& flags);
Outcome run_doctor(const DoctorFlags& flags);

}  // namespace meshwright
