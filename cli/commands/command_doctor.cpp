#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/commands/commands.hpp"
#include "cli/flags/choice_flag.hpp"
#include "cli/job/job.hpp"
#include "cli/run/run_device.hpp"
#include "core/base/parse_quantity.hpp"
#include "executor/calibration/host.hpp"
#include "executor/transport/nccl.hpp"
#include "kernels/device/backend_plugin.hpp"
#include "models/load/load.hpp"

namespace meshwright {
namespace {

struct DoctorFlags {
  std::string device = "cpu";  ///< must be usable
  OutputFlags output;
};

struct PresetCheck {
  std::size_t models = 0, clusters = 0, devices = 0;
  std::vector<Diagnostic> problems;
};

/// Loads all presets.
PresetCheck check_presets() {
  PresetCheck check;
  const auto count_if_loaded = [&check](std::size_t& count, const auto& load) {
    try {
      load();
      ++count;
    } catch (const InputError& error) {
      check.problems.insert(check.problems.end(), error.diagnostics().begin(),
                            error.diagnostics().end());
    }
  };
  for (const std::string& name : model_preset_names())
    count_if_loaded(check.models, [&] { model_from_config(find_model(name)); });
  for (const std::string& name : cluster_preset_names())
    count_if_loaded(check.clusters, [&] { cluster_from_toml(find_cluster(name)); });
  for (const std::string& name : device_preset_names())
    count_if_loaded(check.devices, [&] { device_from_toml(find_device(name)); });
  return check;
}

std::string compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#else
  return "gcc " __VERSION__;
#endif
}

std::string nccl_of(Backend backend) {
  const NcclTable* nccl = nccl_table(backend);
  if (nccl == nullptr) return "built without NCCL";
  if (std::string missing = nccl->missing(); !missing.empty()) return missing;
  const int v = nccl->version();  // 22809: 2.28.9
  return fmt::format("NCCL {}.{}.{}", v / 10000, v / 100 % 100, v % 100);
}

/// The GPUs that `run` can use and the libraries it uses there, or why it cannot use any.
std::string gpus() {
  std::vector<std::string> usable, missing;
  for (const BackendTraits& backend : kBackends) {
    if (!has_device_memory(backend.backend)) continue;
    const BackendPlugin& plugin = backend_plugin(backend.backend);
    if (!plugin.missing.empty()) {
      missing.push_back(plugin.missing);
      continue;
    }
    for (int i = 0; i < plugin.exports->device.count(); ++i) {
      const DeviceDescription device = plugin.exports->device.describe(i);
      usable.push_back(fmt::format("{}, {}, compute capability {}.{}, {}, {}, {}, {}", device.name,
                                   to_text(device.memory), device.major, device.minor,
                                   device.driver, device.state, device.libraries,
                                   nccl_of(backend.backend)));
    }
  }
  if (usable.empty()) return fmt::format("none: {}", fmt::join(missing, "; "));
  return fmt::format("{}", fmt::join(usable, "; "));
}

CLI::App* add_doctor_command(CLI::App& app, DoctorFlags& flags) {
  CLI::App* command = app.add_subcommand("doctor", "Check this installation and this machine.");
  add_choice(*command, "--device", flags.device, device_names(),
             "device that must be usable (default: cpu)");
  add_output_flags(*command, flags.output, "the result");
  command->footer("Exits with status 4 if a required component is missing. Only --device " +
                  gpu_names() +
                  " requires a GPU.\n"
                  "\n"
                  "Examples:\n"
                  "  meshwright doctor\n"
                  "  meshwright doctor --device cuda --json");
  return command;
}

Outcome run_doctor(const DoctorFlags& flags) {
  const PresetCheck presets = check_presets();
  const unsigned cores = std::thread::hardware_concurrency();
  const Bytes memory = host_memory().value_or(Bytes(0));
  const bool is_sound =
      presets.problems.empty() && presets.models > 0 && presets.clusters > 0 && presets.devices > 0;
  const bool has_device = missing_of_device(flags.device).empty();
  std::string text;
  if (flags.output.json) {
    nlohmann::ordered_json problems = nlohmann::ordered_json::array();
    for (const Diagnostic& d : presets.problems) problems.push_back(format(d));
    text = nlohmann::ordered_json{{"schema", 1},
                                  {"version", MESHWRIGHT_VERSION},
                                  {"compiler", compiler()},
                                  {"cores", cores},
                                  {"memory_bytes", memory.value},
                                  {"gpus", gpus()},
                                  {"models", presets.models},
                                  {"clusters", presets.clusters},
                                  {"devices", presets.devices},
                                  {"problems", problems},
                                  {"sound", is_sound && has_device}}
               .dump(2) +
           "\n";
  } else {
    text = fmt::format("meshwright {}, built with {}\n", MESHWRIGHT_VERSION, compiler());
    text += fmt::format("machine    {} cores, {} of memory\n", cores, to_text(memory));
    text += fmt::format("GPUs       {}\n", gpus());
    text += fmt::format("presets    {} models, {} clusters and {} devices loaded\n", presets.models,
                        presets.clusters, presets.devices);
    for (const Diagnostic& d : presets.problems) text += format(d);
    text += !is_sound     ? "This installation is broken.\n"
            : !has_device ? fmt::format("Planning and simulation are ready; --device {} is not.\n",
                                        flags.device)
                          : "Ready.\n";
  }
  Outcome outcome = deliver(std::move(text), flags.output);
  outcome.exit_code = is_sound && has_device ? kExitDone : kExitMissingEnvironment;
  return outcome;
}

}  // namespace

Command doctor_command(CLI::App& app) { return make_command(app, add_doctor_command, run_doctor); }

}  // namespace meshwright
