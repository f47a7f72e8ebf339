#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/calibrate.hpp"
#include "cli/commands.hpp"
#include "cli/interrupt.hpp"
#include "cli/run_input.hpp"
#include "core/io_file.hpp"
#include "core/parse_quantity.hpp"
#include "models/this_machine.hpp"
#include "simulator/expected_maximum.hpp"

namespace meshwright {
namespace {

constexpr std::chrono::seconds kWhole(90), kQuick(15);

void show_progress(const std::string& what, double share) {
  stop_if_interrupted();
  fmt::print(stderr, "{:>3.0f} %  {}\n", 100 * std::min(1.0, share), what);
}

std::string place_of(const CalibrateFlags& flags) {
  return flags.output.file.empty() ? this_machine_path() : flags.output.file;
}

/// Before two minutes of measuring.
void check_place(const CalibrateFlags& flags, const std::string& place) {
  const std::filesystem::path folder = std::filesystem::path(place).parent_path();
  std::error_code error;
  if (flags.output.file.empty() && !folder.empty())
    std::filesystem::create_directories(folder, error);  // else it is not there, as is said then
  check_place_of("--output", place);
}

/// What the file says, by and large.
std::string summary(const Calibration& calibration, const std::string& place) {
  const MeasuredMachine& machine = *calibration.machine;
  std::size_t points = 0;
  for (const KernelCurve& curve : calibration.kernels) points += curve.points.size();
  const char* where = machine.gpu ? "on one GPU" : "on one core";
  std::string text = machine.gpu ? fmt::format("{} x {}, {} of memory\n", machine.gpu->count,
                                               machine.processor, to_text(machine.memory))
                                 : fmt::format("{}: {} cores, {} of memory\n", machine.processor,
                                               machine.cores, to_text(machine.memory));
  for (const auto& [dtype, rate] : machine.peak)
    text += fmt::format("  products, {:<10} up to {:.1f} GFLOP/s {}\n", name_of(dtype),
                        1e-9 * rate.value, where);
  text += fmt::format("  large streams        {} {}\n", to_text(machine.memory_bandwidth), where);
  if (machine.gpu)
    text += fmt::format("  copies               {} to the GPU, {} back; a launch takes {:.1f} us\n",
                        to_text(machine.gpu->to_device), to_text(machine.gpu->from_device),
                        1e6 * machine.gpu->launch_overhead.value);
  text += fmt::format("  messages             {:.1f} us, then {}\n",
                      1e6 * machine.message_latency.value, to_text(machine.message_bandwidth));
  if (machine.noise.value > 0)
    text += fmt::format("  two equal ranks      wait {:.1f} % where they meet every millisecond\n",
                        100 * expected_maximum(2) * std::sqrt(machine.noise.value / 1e-3));
  text += fmt::format("  kernels              {} families at {} shapes; {}\n",
                      calibration.kernels.size(), points, calibration.provenance.at("probes"));
  return text + fmt::format("Written to {}; --cluster this-machine reads {}.\n", place,
                            this_machine_path() == place ? "it" : this_machine_path());
}

std::string json_summary(const Calibration& calibration, const std::string& place) {
  using Json = nlohmann::ordered_json;
  return Json{{"schema", 1},
              {"file", place},
              {"families", calibration.kernels.size()},
              {"provenance", calibration.provenance}}
             .dump(2, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

}  // namespace

CLI::App* add_calibrate_command(CLI::App& app, CalibrateFlags& flags) {
  CLI::App* command = app.add_subcommand(
      "calibrate", "Measure this machine's kernels and messages: what this-machine is priced by.");
  command->add_flag("--quick", flags.quick, "20 seconds instead of two minutes, fewer shapes");
  command->add_option("--device", flags.device, "whose kernels: this machine's cores' or a GPU's")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->type_name("NAME");
  add_output_flags(*command, flags.output, "the calibration, else where this-machine finds it");
  command->footer(
      "Kernels are timed as they run in training steps of small models, one thread at a time, by\n"
      "CPU time; with --device cuda on the GPU, by its events, as are copies and messages. "
      "Without\n"
      "-o the calibration goes to $MESHWRIGHT_CALIBRATION, else to\n"
      "$XDG_DATA_HOME/meshwright/this-machine.calib.json (~/.local/share).\n"
      "\n"
      "Examples:\n"
      "  meshwright calibrate\n"
      "  meshwright plan --model gpt2 --cluster this-machine --gpus 2 --dtype fp32 \\\n"
      "      --global-batch 8 --seq 64 -o best.plan.json");
  return command;
}

Outcome run_calibrate(const CalibrateFlags& flags) {
  const std::string place = place_of(flags);
  check_place(flags, place);
  const Calibration calibration =
      calibrate({.budget = flags.quick ? kQuick : kWhole,
                 .command = flags.quick ? "meshwright calibrate --quick" : "meshwright calibrate",
                 .device = flags.device,
                 .progress = show_progress});
  stop_if_interrupted();
  if (place == "-") return {.text = to_json(calibration)};
  write_file(place, to_json(calibration));
  return {.text =
              flags.output.json ? json_summary(calibration, place) : summary(calibration, place)};
}

}  // namespace meshwright
