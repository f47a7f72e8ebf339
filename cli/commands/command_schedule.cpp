#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/commands/commands.hpp"
#include "cli/flags/choice_flag.hpp"
#include "cli/flags/help_formatter.hpp"
#include "cli/flags/strategy_flags.hpp"
#include "cli/schedule/schedule_figures.hpp"
#include "core/formats/file.hpp"
#include "core/formats/schedule_csv.hpp"

namespace meshwright {
namespace {

constexpr CountRange kStageRange{.smallest = 1, .largest = 256};
constexpr CountRange kChunkRange{.smallest = 1, .largest = 64};
constexpr CountRange kMicrobatchRange{.smallest = 1, .largest = 4096};
constexpr CountRange kSliceRange{.smallest = 1, .largest = 256};
constexpr CountRange kCapRange{.smallest = 1, .largest = 1 << 20};
/// Limit on stages x micro-batches that keeps the run time below a minute.
constexpr std::int64_t kMostStageMicrobatches = std::int64_t{1} << 17;

int need(const std::optional<int>& value, const char* flag) {
  if (!value) refuse_flag(flag, "missing required option", "run 'meshwright schedule --help'");
  return *value;
}

void add_schedule_flags(CLI::App& command, ScheduleFlags& flags) {
  const OptionGroup group(command, "Schedule");
  add_value(command, "--name", flags.name, "NAME",
            "schedule (see 'meshwright show schedules'); auto: synthesize one");
  add_count(command, "--stages", flags.stages, kStageRange, "number of devices in the pipeline");
  add_count(command, "--microbatches", flags.microbatches, kMicrobatchRange,
            "number of micro-batches");
  add_count(command, "--chunks", flags.chunks, kChunkRange,
            "model chunks per device (default: 1, or 2 if the schedule requires it)");
  add_choice(command, "--placement", flags.placement, {"loop", "v", "wave"},
             "placement of the chunks with --name auto (default: the best)");
  add_count(command, "--slices", flags.slices, kSliceRange,
            "sequence slices per micro-batch (seq1f1b and terapipe)");
  add_count(command, "--cap", flags.cap, kCapRange,
            "activation limit per device, in micro-batches");
  add_choice(command, "--objective", flags.objective, {"makespan", "period"},
             "objective to minimize with --name auto (default: makespan)");
  add_value(command, "--activation", flags.activation, "SIZE",
            "saved activations per micro-batch and device, such as 1GiB");
}

void add_time_flags(CLI::App& command, ScheduleFlags& flags) {
  const OptionGroup group(command, "Times");
  const auto add = [&](const char* flag, std::vector<std::string>& words, const char* what) {
    add_value(command, flag, words, "T,T,...", what)->expected(1, 1 << 14);
  };
  add("--tf", flags.forward,
      "forward time: one value, one per device, or one per chunk (default: 1)");
  add("--tb", flags.backward_input, "backward-input time, in the same form (default: 1)");
  add("--tw", flags.backward_weight, "backward-weight time, in the same form (default: 1)");
  add("--tcomm", flags.latency,
      "latency to the next device: one value, or one per device (default: 0)");
  add("--ts", flags.output_scores,
      "S pass of the sharded output layer of vocab-1f1b, in the same form (default: 0)");
  add("--tt", flags.output_gradients,
      "T pass of the sharded output layer of vocab-1f1b, in the same form (default: 0)");
  add_value(command, "--tbarrier", flags.barrier, "T",
            "all-reduce between S and T passes of vocab-1f1b (default: 0)");
  add_value(command, "--unit", flags.unit, "{s,ms,us,ns}", "unit of all times (default: ms)");
}

void add_csv_flags(CLI::App& command, ScheduleFlags& flags) {
  const OptionGroup group(command, "Schedule files");
  add_value(command, "--csv", flags.csv_file, "FILE",
            "write the schedule as CSV, in the format of PyTorch");
  add_choice(command, "--csv-content", flags.csv_content, {"compute", "comms"},
             "passes only, or also sends and receives (default: compute)");
  add_choice(command, "--csv-dialect", flags.csv_dialect, {"current", "old"},
             "backward passes as I, W, B or in the older form B, W, BW (default: current)");
  add_value(command, "--check", flags.check_file, "FILE",
            "check and time a schedule CSV instead of generating a schedule");
}

CLI::App* add_schedule_command(CLI::App& app, ScheduleFlags& flags) {
  CLI::App* command = app.add_subcommand(
      "schedule", "Generate, synthesize or check a pipeline schedule, and compute its timing.");
  add_schedule_flags(*command, flags);
  add_time_flags(*command, flags);
  add_csv_flags(*command, flags);
  add_report_flags(*command, flags.output, "the timing and the schedule");
  command->footer(
      "Bubble rates are those of Zero Bubble (arXiv 2401.10241): 1 - m (tF + tB + tW) / x, mean "
      "over\n"
      "devices, where x is the makespan or the period.\n\n"
      "Examples:\n"
      "  meshwright schedule --name auto --stages 2 --microbatches 6 --tf 9,10 --tb 10,12 \\\n"
      "      --tw 7,8 --tcomm 0.25 --unit ms --cap 3 --csv order.csv\n"
      "  meshwright schedule --check order.csv --tf 9,10 --tb 10,12 --tw 7,8 --cap 3");
  return command;
}

ScheduleFigures figures_of(const ScheduleFlags& flags) {
  if (!flags.check_file.empty()) {
    if (!flags.name.empty() || flags.stages || flags.microbatches || flags.chunks)
      refuse_flag("--check",
                  "cannot be combined with '--name', '--stages', '--microbatches' or '--chunks'",
                  "remove them: the file describes the schedule");
    return checked_schedule(flags);
  }
  const std::int64_t stages =
      std::int64_t{need(flags.stages, "--stages")} * flags.chunks.value_or(1);
  const std::int64_t units =
      std::int64_t{need(flags.microbatches, "--microbatches")} * flags.slices.value_or(1);
  if (stages * units > kMostStageMicrobatches)
    refuse_flag("--microbatches",
                fmt::format("{} stages x {} micro-batches exceed the limit of {}", stages, units,
                            kMostStageMicrobatches),
                "use fewer micro-batches");
  if (flags.name.empty())
    refuse_flag("--name", "missing required option",
                "set it to auto, or to a name listed by 'meshwright show schedules'");
  if (flags.name != "auto" && !flags.placement.empty())
    refuse_flag("--placement",
                fmt::format("requires '--name auto': '{}' has a fixed placement", flags.name),
                "remove it, or use --name auto");
  if (flags.name != "auto") return named_schedule(flags);
  if (flags.slices)
    refuse_flag("--slices", "cannot be combined with '--name auto'",
                "use --name seq1f1b or --name terapipe");
  return synthesized_schedule(flags);
}

Outcome run_schedule(const ScheduleFlags& flags) {
  const ScheduleFigures f = figures_of(flags);
  const bool is_text = flags.output.format == DocumentFormat::kText;
  const Document text = flags.output.json ? schedule_json(f, flags)
                        : is_text         ? schedule_text(f, flags)
                                          : schedule_tables(f, flags);
  if (!flags.csv_file.empty())
    write_file(
        flags.csv_file,
        write_schedule_csv(f.schedule,
                           flags.csv_content == "comms" ? CsvContent::kWithCommunication
                                                        : CsvContent::kComputeOnly,
                           flags.csv_dialect == "old" ? CsvDialect::kOld : CsvDialect::kCurrent));
  return deliver(text, flags.output);
}

}  // namespace

Command schedule_command(CLI::App& app) {
  return make_command(app, add_schedule_command, run_schedule);
}

}  // namespace meshwright
