#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/schedule_figures.hpp"
#include "core/io_file.hpp"
#include "core/io_schedule_csv.hpp"

namespace meshwright {
namespace {

constexpr CountRange kStageRange{.smallest = 1, .largest = 256};
constexpr CountRange kChunkRange{.smallest = 1, .largest = 64};
constexpr CountRange kMicrobatchRange{.smallest = 1, .largest = 4096};
constexpr CountRange kSliceRange{.smallest = 1, .largest = 256};
constexpr CountRange kCapRange{.smallest = 1, .largest = 1 << 20};
/// Stages x micro-batches: what an answer within a minute allows.
constexpr std::int64_t kMostStageMicrobatches = std::int64_t{1} << 17;

int need(const std::optional<int>& value, const char* flag) {
  if (!value) refuse_flag(flag, "is needed and was not given", "see meshwright schedule --help");
  return *value;
}

void add_time_flags(CLI::App& command, ScheduleFlags& flags) {
  const auto add = [&](const char* flag, std::vector<std::string>& words, const char* what) {
    command.add_option(flag, words, what)->type_name("T...")->expected(1, 1 << 14);
  };
  add("--tf", flags.forward, "forward: one time, one per device, or one per chunk");
  add("--tb", flags.backward_input, "gradient of the input, likewise");
  add("--tw", flags.backward_weight, "gradient of the weights, likewise");
  add("--tcomm", flags.latency, "to the next device: one time, or one per device");
  add("--ts", flags.output_scores, "share of a split output layer (vocab-1f1b), likewise");
  add("--tt", flags.output_gradients, "gradients of that share, likewise");
  command.add_option("--tbarrier", flags.barrier, "message that joins all shares")->type_name("T");
  command.add_option("--unit", flags.unit, "of all times")->type_name("s|ms|us|ns");
}

void add_csv_flags(CLI::App& command, ScheduleFlags& flags) {
  command.add_option("--csv", flags.csv_file, "write PyTorch's schedule CSV")->type_name("FILE");
  command.add_option("--csv-content", flags.csv_content, "passes alone, or messages as well")
      ->check(CLI::IsMember({"compute", "comms"}))
      ->type_name("compute|comms");
  command.add_option("--csv-dialect", flags.csv_dialect, "I W B, or the older B W BW")
      ->check(CLI::IsMember({"current", "old"}))
      ->type_name("current|old");
  command.add_option("--check", flags.check_file, "judge and time a schedule CSV instead")
      ->type_name("FILE");
}

}  // namespace

void refuse_flag(const std::string& flag, std::string what, std::string hint) {
  throw UsageError({.where = flag, .what = std::move(what), .hint = std::move(hint)});
}

CLI::App* add_schedule_command(CLI::App& app, ScheduleFlags& flags) {
  CLI::App* command = app.add_subcommand(
      "schedule", "Order the work of a pipeline: a schedule by name, or one made to measure.");
  command->add_option("--name", flags.name, "a schedule, or auto")->type_name("NAME");
  add_count(*command, "--stages", flags.stages, kStageRange, "devices of the pipeline");
  add_count(*command, "--microbatches", flags.microbatches, kMicrobatchRange, "micro-batches");
  add_count(*command, "--chunks", flags.chunks, kChunkRange, "stages on each device");
  command->add_option("--placement", flags.placement, "where auto puts several chunks")
      ->check(CLI::IsMember({"loop", "v", "wave"}))
      ->type_name("loop|v|wave");
  add_count(*command, "--slices", flags.slices, kSliceRange,
            "pieces of the sequence (seq1f1b, terapipe)");
  add_time_flags(*command, flags);
  add_count(*command, "--cap", flags.cap, kCapRange, "micro-batches a device may hold");
  command->add_option("--objective", flags.objective, "what auto makes small")
      ->check(CLI::IsMember({"makespan", "period"}))
      ->type_name("makespan|period");
  command->add_option("--activation", flags.activation, "of one micro-batch on a device, \"1 GiB\"")
      ->type_name("SIZE");
  add_csv_flags(*command, flags);
  add_output_flags(*command, flags.output, "the figures and orders");
  command->footer(
      "Examples:\n"
      "  meshwright schedule --name auto --stages 2 --microbatches 6 --tf 9,10 --tb 10,12 \\\n"
      "      --tw 7,8 --tcomm 0.25 --unit ms --cap 3 --csv order.csv\n"
      "  meshwright schedule --check order.csv --tf 9,10 --tb 10,12 --tw 7,8 --cap 3");
  return command;
}

namespace {

ScheduleFigures figures_of(const ScheduleFlags& flags) {
  if (!flags.check_file.empty()) {
    if (!flags.name.empty() || flags.stages || flags.microbatches || flags.chunks)
      refuse_flag("--check", "stands beside a description of another schedule",
                  "leave out --name, --stages, --microbatches and --chunks: the file says them");
    return checked_schedule(flags);
  }
  const std::int64_t stages =
      std::int64_t{need(flags.stages, "--stages")} * flags.chunks.value_or(1);
  const std::int64_t units =
      std::int64_t{need(flags.microbatches, "--microbatches")} * flags.slices.value_or(1);
  if (stages * units > kMostStageMicrobatches)
    refuse_flag("--microbatches",
                fmt::format("{} stages of {} micro-batches are too many", stages, units),
                fmt::format("at most {} stages x micro-batches", kMostStageMicrobatches));
  if (flags.name.empty())
    refuse_flag("--name", "is needed and was not given", "auto, or one that show schedules lists");
  if (flags.name != "auto" && !flags.placement.empty())
    refuse_flag("--placement", fmt::format("'{}' has a placement of its own", flags.name),
                "leave it out, or --name auto");
  if (flags.name != "auto") return named_schedule(flags);
  if (flags.slices)
    refuse_flag("--slices", "auto orders whole micro-batches", "seq1f1b and terapipe take slices");
  return synthesised_schedule(flags);
}

}  // namespace

Outcome run_schedule(const ScheduleFlags& flags) {
  const ScheduleFigures f = figures_of(flags);
  const std::string text = flags.output.json ? schedule_json(f, flags) : schedule_text(f, flags);
  if (!flags.csv_file.empty())
    write_file(
        flags.csv_file,
        write_schedule_csv(f.schedule,
                           flags.csv_content == "comms" ? CsvContent::kWithCommunication
                                                        : CsvContent::kComputeOnly,
                           flags.csv_dialect == "old" ? CsvDialect::kOld : CsvDialect::kCurrent));
  return deliver(text, flags.output);
}

}  // namespace meshwright
