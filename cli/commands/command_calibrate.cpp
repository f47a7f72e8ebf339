#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/calibration/calibrate.hpp"
#include "cli/commands/commands.hpp"
#include "cli/flags/choice_flag.hpp"
#include "cli/run/run_device.hpp"
#include "cli/run/run_input.hpp"
#include "cli/terminal/interrupt.hpp"
#include "cli/terminal/standard_streams.hpp"
#include "core/base/parse_quantity.hpp"
#include "core/formats/file.hpp"
#include "models/load/this_machine.hpp"
#include "simulator/variation/expected_maximum.hpp"

namespace meshwright {
namespace {

struct CalibrateFlags {
  bool quick = false;
  std::string device = "cpu";
  OutputFlags output;
};

using Json = nlohmann::ordered_json;

constexpr std::chrono::seconds kWhole(90), kQuick(15);

void show_progress(const std::string& what, double share) {
  stop_if_interrupted();
  print_to_stderr(fmt::format("{:>3.0f} %  {}\n", 100 * std::min(1.0, share), what));
}

std::string place_of(const CalibrateFlags& flags) {
  return flags.output.file.empty() ? this_machine_path() : flags.output.file;
}

/// Fails early: measuring takes two minutes.
void check_place(const CalibrateFlags& flags, const std::string& place) {
  const std::filesystem::path folder = std::filesystem::path(place).parent_path();
  std::error_code error;
  if (flags.output.file.empty() && !folder.empty())
    std::filesystem::create_directories(folder, error);  // check_place_of() reports a failure
  check_place_of("--output", place);
}

/// The main figures of the calibration.
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
    text += fmt::format("  GEMM {:<15} up to {:.1f} GFLOP/s {}\n", name_of(dtype),
                        1e-9 * rate.value, where);
  text += fmt::format("  memory bandwidth     {} {}\n", to_text(machine.memory_bandwidth), where);
  if (machine.gpu)
    text += fmt::format(
        "  copies               {} host to device, {} device to host\n"
        "  kernel launch        {:.1f} us\n",
        to_text(machine.gpu->to_device), to_text(machine.gpu->from_device),
        1e6 * machine.gpu->launch_overhead.value);
  text += fmt::format("  messages             latency {:.1f} us, bandwidth {}\n",
                      1e6 * machine.message_latency.value, to_text(machine.message_bandwidth));
  if (machine.noise.value > 0)
    text +=
        fmt::format("  jitter               {:.1f} % waiting if 2 equal ranks sync every 1 ms\n",
                    100 * expected_maximum(2) * std::sqrt(machine.noise.value / 1e-3));
  text += fmt::format("  kernels              {} families, {} shapes; {}\n",
                      calibration.kernels.size(), points, calibration.provenance.at("probes"));
  text += fmt::format("Wrote {}.\n", place);
  if (this_machine_path() != place)
    text += fmt::format("Note: --cluster this-machine reads {} unless --calibration is set.\n",
                        this_machine_path());
  return text;
}

std::string json_summary(const Calibration& calibration, const std::string& place) {
  return Json{{"schema", 1},
              {"file", place},
              {"families", calibration.kernels.size()},
              {"provenance", calibration.provenance}}
             .dump(2, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

CLI::App* add_calibrate_command(CLI::App& app, CalibrateFlags& flags) {
  CLI::App* command = app.add_subcommand(
      "calibrate", "Benchmark kernels and communication for --cluster this-machine.");
  command->add_flag("--quick", flags.quick,
                    "measure fewer shapes: 20 seconds instead of two minutes");
  add_choice(*command, "--device", flags.device, device_names(),
             "device to calibrate (default: cpu)");
  add_output_flags(*command, flags.output, "the calibration");
  command->footer(
      "Kernels are timed in training steps of small models: by CPU time, with one thread running "
      "at\n"
      "a time, or with --device cuda by CUDA events, like copies and messages.\n"
      "The default output file, which --cluster this-machine reads, is $MESHWRIGHT_CALIBRATION or\n"
      "else $XDG_DATA_HOME/meshwright/this-machine.calib.json (in ~/.local/share by default).\n"
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

}  // namespace

Command calibrate_command(CLI::App& app) {
  return make_command(app, add_calibrate_command, run_calibrate);
}

}  // namespace meshwright
