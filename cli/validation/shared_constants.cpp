#include "cli/validation/shared_constants.hpp"

#include <algorithm>

#include "models/load/trainer_toml.hpp"

namespace meshwright {
namespace {

/// Values before any run was measured. Host: an asynchronous launch from Python, and a module call;
/// traffic: as counted, in fused kernels; rates: nine tenths of a long burst, as on A100, and the
/// shares of models/devices that say "typical of current GPUs".
constexpr double kTypicalPerKernel = 6e-6, kTypicalPerCollective = 20e-6;
constexpr double kTypicalLayerForward = 100e-6, kTypicalLayerBackward = 60e-6;
constexpr double kTypicalTraffic = 1;
constexpr double kTypicalSustained = 0.9, kTypicalFp8Share = 0.8, kTypicalNvfp4Share = 0.7;
/// Of the host, hardly anything is known before: a factor of e. Then of traffic and of rates.
constexpr double kHostSpread = 1, kTrafficSpread = 0.5, kRateSpread = 0.15;
constexpr double kMostHostSeconds = 0.01, kMostTraffic = 10;

void add_trainer_constants(const std::string& generation, std::vector<SharedConstant>& constants) {
  const Trainer profile = trainer_from_toml(find_trainer(generation));
  const auto add = [&](SharedConstant constant,
                       const std::function<void(double, Trainer&)>& scale) {
    constant.scale_trainer = [generation, scale](double factor, Trainer& trainer) {
      if (trainer.generation == generation) scale(factor, trainer);
    };
    constants.push_back(std::move(constant));
  };
  const auto host = [&](std::string key, Seconds HostCosts::*time, double typical) {
    add({.file = generation,
         .key = "host." + std::move(key),
         .in_file = (profile.host.*time).value,
         .typical = typical,
         .spread = kHostSpread,
         .smallest = typical / 10,
         .largest = kMostHostSeconds},
        [time](double f, Trainer& t) { t.host.*time = f * t.host.*time; });
  };
  const auto traffic = [&](std::string key, std::vector<Routine> scaled) {
    const double in_file = profile.cost_of(scaled.front()).forward;
    add({.file = generation,
         .key = std::move(key),
         .in_file = in_file,
         .typical = kTypicalTraffic,
         .spread = kTrafficSpread,
         .smallest = 1,
         .largest = kMostTraffic},
        [scaled = std::move(scaled)](double f, Trainer& t) {
          for (const Routine routine : scaled) {
            RoutineCost& cost = t.routines[static_cast<std::size_t>(routine)];
            cost.forward *= f;
            cost.backward *= f;
          }
        });
  };
  host("per_kernel", &HostCosts::per_kernel, kTypicalPerKernel);
  host("per_collective", &HostCosts::per_collective, kTypicalPerCollective);
  host("per_layer_forward", &HostCosts::per_layer_forward, kTypicalLayerForward);
  host("per_layer_backward", &HostCosts::per_layer_backward, kTypicalLayerBackward);
  traffic("elementwise", {Routine::kLayerNorm, Routine::kRmsNorm, Routine::kGelu, Routine::kRelu,
                          Routine::kSquaredRelu, Routine::kSwiGlu, Routine::kResidual,
                          Routine::kRotary, Routine::kBias});
  traffic("routines.cross-entropy", {Routine::kCrossEntropy});
}

double long_rate(const GemmEfficiency& gemm) {
  return gemm.long_efficiency.value_or(gemm.max_efficiency);
}

/// The rates of products in continuous training, which the power limit sets: in 16 bits, and shares
/// of it in narrower formats.
void add_device_constants(const DeviceModel& device, const std::string& prefix,
                          std::vector<SharedConstant>& constants) {
  const auto add = [&](SharedConstant constant,
                       const std::function<void(double, GemmEfficiency&)>& scale) {
    constant.spread = kRateSpread;
    constant.smallest = 0.2;
    constant.scale_device = [prefix, scale](double factor, DeviceModel& scaled) {
      if (scaled.name.starts_with(prefix)) scale(factor, scaled.gemm);
    };
    constants.push_back(std::move(constant));
  };
  add({.file = prefix,
       .key = "gemm.sustained_efficiency",
       .in_file = device.gemm.sustained_efficiency.value_or(long_rate(device.gemm)),
       .typical = kTypicalSustained * long_rate(device.gemm)},
      [](double factor, GemmEfficiency& gemm) {
        const double now = gemm.sustained_efficiency.value_or(long_rate(gemm));
        gemm.sustained_efficiency = std::min(1.0, factor * now);
      });
  const auto share = [&](std::string key, double typical, std::vector<ProductFormat> formats) {
    const double in_file = device.gemm.format_long_share[static_cast<std::size_t>(formats.front())];
    add({.file = prefix, .key = std::move(key), .in_file = in_file, .typical = typical},
        [formats = std::move(formats)](double factor, GemmEfficiency& gemm) {
          for (const ProductFormat format : formats)
            gemm.format_long_share[static_cast<std::size_t>(format)] *= factor;
        });
  };
  share("gemm.fp8 long shares", kTypicalFp8Share,
        {ProductFormat::kFp8, ProductFormat::kFp8Block, ProductFormat::kMxfp8});
  share("gemm.nvfp4_long_share", kTypicalNvfp4Share, {ProductFormat::kNvfp4});
}

/// The first device of that name in the clusters of the runs.
const DeviceModel* device_named(const LoadedRuns& runs, const std::string& prefix) {
  for (const Cluster& cluster : runs.clusters)
    for (const auto& [name, device] : cluster.devices)
      if (device.name.starts_with(prefix)) return &device;
  return nullptr;
}

}  // namespace

std::vector<SharedConstant> shared_constants(const LoadedRuns& runs) {
  std::vector<SharedConstant> constants;
  for (const char* generation : {"pytorch-2021", "pytorch-2024", "transformer-engine"})
    add_trainer_constants(generation, constants);
  // Devices without kernels measured at sustained clocks.
  for (const char* name : {"H100", "GB200", "GB300", "B300"})
    if (const DeviceModel* device = device_named(runs, name))
      add_device_constants(*device, name, constants);
  return constants;
}

}  // namespace meshwright
