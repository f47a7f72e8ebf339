#include "core/cluster/device.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/base/check.hpp"
#include "core/cluster/device_parameters.hpp"
#include "core/cluster/figure_checks.hpp"
#include "core/cluster/visit_collective_parameters.hpp"

namespace meshwright {
namespace {

constexpr std::array<std::string_view, kStreamFamilyCount> kFamilyNames{
    "norm",    "norm-backward", "activation", "gated-activation", "gated-activation-backward",
    "add",     "rotary",        "softmax",    "cross-entropy",    "embedding",
    "permute", "cast",          "reduction",  "optimizer"};

class DeviceChecks : private FigureChecks {
 public:
  DeviceChecks(const DeviceModel& device, const std::string& place)
      : FigureChecks(place + "."), device_(device) {}

  std::vector<Diagnostic> run() {
    need_positive("memory", static_cast<double>(device_.memory.value), "size");
    need_not_negative("reserved_memory", static_cast<double>(device_.reserved_memory.value),
                      "size");
    if (device_.memory.value > 0 && device_.reserved_memory >= device_.memory)
      report("reserved_memory",
             fmt::format("must be less than the memory of {} bytes, got {} bytes",
                         device_.memory.value, device_.reserved_memory.value),
             "reserve less memory");
    need_positive("memory_bandwidth", device_.memory_bandwidth.value, "rate");
    need_not_negative("launch_overhead", device_.launch_overhead.value, "time");
    if (device_.multiprocessors < 1)
      report("multiprocessors", fmt::format("must be at least 1, got {}", device_.multiprocessors),
             "");
    check_power();
    check_peaks();
    check_parameters();
    return std::move(found_);
  }

 private:
  void check_power() {
    if (device_.design_power) need_positive("design_power", device_.design_power->value, "power");
    if (!device_.power_limit) return;
    need_positive("power_limit", device_.power_limit->value, "power");
    if (!device_.design_power)
      report("power_limit", "requires the design power",
             "add design_power, the power at which the sustained efficiencies hold");
    else if (*device_.power_limit > *device_.design_power)
      report("power_limit",
             fmt::format("must not exceed the design power of {} W, got {} W",
                         device_.design_power->value, device_.power_limit->value),
             "");
  }

  void check_peaks() {
    bool any = false;
    for (std::size_t i = 0; i < device_.peak.size(); ++i) {
      if (!device_.peak[i]) continue;
      any = true;
      need_positive(fmt::format("peak.{}", name_of(static_cast<Dtype>(i))), device_.peak[i]->value,
                    "rate");
    }
    if (!any) report("peak", "missing peak rate", "give at least one, such as bf16");
  }

  /// For the parameters of one group.
  BoundsCheck check(std::string group) {
    return {
        [this, group = std::move(group)](std::string_view key, std::string what, std::string hint) {
          report(fmt::format("{}.{}", group, key), std::move(what), std::move(hint));
        }};
  }

  void check_parameters() {
    visit_parameters_of_gemm(device_.gemm, check("gemm"));
    if (device_.gemm.tile_m < 1 || device_.gemm.tile_n < 1)
      report("gemm",
             fmt::format("tile size must be positive, got {} x {}", device_.gemm.tile_m,
                         device_.gemm.tile_n),
             "use a common tile size such as 128 x 256");
    visit_parameters_of_stream(device_.memory_efficiency, check("memory_efficiency"));
    for (std::size_t i = 0; i < device_.streams.size(); ++i)
      if (device_.streams[i])
        visit_parameters_of_stream(*device_.streams[i],
                                   check(fmt::format("memory_efficiency.{}", kFamilyNames[i])));
    visit_parameters_of_attention(device_.attention, check("attention"));
    if (device_.flash_attention_2)
      visit_parameters_of_attention(*device_.flash_attention_2, check("flash_attention_2"));
    if (device_.collectives) check_collectives(*device_.collectives);
  }

  void check_collectives(const CollectiveParameters& collectives) {
    visit_parameters_of_collectives(collectives, check("collectives"));
    visit_collective_tables(collectives, [&](std::string_view name, const auto& table) {
      visit_parameters_of_table(table, check(fmt::format("collectives.{}", name)));
    });
  }

  const DeviceModel& device_;
};

}  // namespace

void BoundsCheck::operator()(std::string_view key, double value, ParameterBounds bounds) const {
  if (bounds.contains(value)) return;
  report(key,
         fmt::format("must be {} {} and at most {}, got {}", bounds.positive ? "above" : "at least",
                     bounds.least, bounds.most, value),
         bounds.positive && bounds.most == 1 ? "give it as a fraction of the peak" : "");
}

std::string_view name_of(StreamFamily family) {
  return kFamilyNames[static_cast<std::size_t>(family)];
}

StreamFamily stream_family_of(Routine routine, Phase phase) {
  const bool forward = phase == Phase::kForward;
  switch (routine) {
    case Routine::kLayerNorm:
    case Routine::kRmsNorm:
      return forward ? StreamFamily::kNorm : StreamFamily::kNormBackward;
    case Routine::kGelu:
    case Routine::kRelu:
    case Routine::kSquaredRelu:
      return StreamFamily::kActivation;
    case Routine::kSwiGlu:
      return forward ? StreamFamily::kGatedActivation : StreamFamily::kGatedActivationBackward;
    case Routine::kResidual:
      return StreamFamily::kAdd;
    case Routine::kRotary:
      return StreamFamily::kRotary;
    case Routine::kSoftmax:
    case Routine::kAttention:
      return StreamFamily::kSoftmax;
    case Routine::kCrossEntropy:
      return StreamFamily::kCrossEntropy;
    case Routine::kEmbedding:
      return StreamFamily::kEmbedding;
    case Routine::kDispatch:
    case Routine::kCombine:
      return StreamFamily::kPermutation;
    case Routine::kBias:
    case Routine::kRouting:
      return StreamFamily::kReduction;
    case Routine::kProduct:
    case Routine::kCast:
      return StreamFamily::kCast;
    case Routine::kUpdate:
      break;
  }
  return StreamFamily::kOptimizer;
}

std::optional<FlopsPerSecond> peak_of(const DeviceModel& device, ProductFormat format) {
  switch (format) {
    case ProductFormat::kNvfp4:
      return device.peak[static_cast<std::size_t>(Dtype::kNvfp4)];
    case ProductFormat::kFp8:
    case ProductFormat::kFp8Block:
    case ProductFormat::kMxfp8:
      return device.peak[static_cast<std::size_t>(Dtype::kFp8)];
    case ProductFormat::kFp32:
    case ProductFormat::kTf32:
    case ProductFormat::kBf16:
    case ProductFormat::kFp16:
      break;
  }
  return device.peak[static_cast<std::size_t>(format)];
}

double power_limited_clock(const DeviceModel& device) {
  if (!device.design_power || !device.power_limit) return 1;
  return std::cbrt(ratio(*device.power_limit, *device.design_power));
}

std::vector<Diagnostic> check_device(const DeviceModel& device, const std::string& place) {
  return DeviceChecks(device, place).run();
}

}  // namespace meshwright
