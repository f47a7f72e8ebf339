#include "simulator/fit/fit_parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/cluster/device_parameters.hpp"
#include "simulator/cost/kernel_time.hpp"

namespace meshwright {
namespace {

/// Ranges by the end of the key; the first match counts.
struct FitRange {
  std::string_view suffix;
  double least, most;
};
constexpr std::array<FitRange, 18> kRanges{{
    {"sustained_share", 0.6, 1.2},
    {"grouped_share", 0.3, 1.3},
    {"memory_share", 0.3, 1.0},
    {"fp8_share", 0.2, 1.3},
    {"dropout_share", 0.3, 1.0},
    {"_share", 0.2, 1.3},
    {"droop_time", 100e-6, 20e-3},
    {"tile_edge", 0, 60},
    {"depth_overhead", 0, 400},
    {"exposed_write", 0, 1.2},
    {"launch_overhead", 0.3e-6, 8e-6},
    {"ramp", 0, 30e-6},
    {"half_speed_bytes", 0, 64e6},
    {"half_length_causal", 0, 4000},
    {"half_length_full", 0, 4000},
    {"gemm.max_efficiency", 0.3, 1.0},
    {"_efficiency", 0.05, 1.0},
    {"", 0.05, 1.0},
}};

double as_number(double value) { return value; }
double as_number(const std::optional<double>& value) { return value.value_or(0); }
double as_number(Seconds value) { return value.value; }
double as_number(Bytes value) { return static_cast<double>(value.value); }
void assign(double& target, double value) { target = value; }
void assign(std::optional<double>& target, double value) {
  target = value > 0 ? std::optional<double>(value) : std::nullopt;  // 0 stands for absent
}
void assign(Seconds& target, double value) { target = Seconds(value); }
void assign(Bytes& target, double value) { target = Bytes(static_cast<std::int64_t>(value)); }

FitParameter named(std::string key) {
  FitParameter parameter;
  const auto range = std::find_if(kRanges.begin(), kRanges.end(), [&](const FitRange& r) {
    return std::string_view(key).ends_with(r.suffix);
  });
  parameter.least = range->least;
  parameter.most = range->most;
  parameter.key = std::move(key);
  return parameter;
}

/// The group of what `visit_all(device, visitor)` visits.
template <class VisitAll>
FitGroup group_of(const std::string& table, VisitAll visit_all) {
  FitGroup group;
  DeviceModel device;
  visit_all(device, [&](const std::string& key, auto& /*value*/, ParameterBounds /*valid*/) {
    group.parameters.push_back(named(table + key));
  });
  group.get = [visit_all](const DeviceModel& source) {
    DeviceModel copy = source;
    std::vector<double> values;
    visit_all(copy, [&](const std::string& /*key*/, auto& value, ParameterBounds /*valid*/) {
      values.push_back(as_number(value));
    });
    return values;
  };
  group.set = [visit_all](DeviceModel& target, const std::vector<double>& values) {
    std::size_t next = 0;
    visit_all(target, [&](const std::string& /*key*/, auto& value, ParameterBounds /*valid*/) {
      assign(value, values[next++]);
    });
  };
  return group;
}

FitGroup stream_group(StreamFamily family) {
  return group_of(fmt::format("memory_efficiency.{}.", name_of(family)),
                  [family](DeviceModel& device, auto visit) {
                    auto& stream = device.streams[static_cast<std::size_t>(family)];
                    if (!stream) stream = device.memory_efficiency;
                    visit_parameters_of_stream(*stream, visit);
                  });
}

}  // namespace

FitGroup fit_group(int group) {
  switch (
      static_cast<ParameterGroup>(std::min(group, static_cast<int>(ParameterGroup::kStreams)))) {
    case ParameterGroup::kLaunch:
      return group_of("", [](DeviceModel& device, auto visit) {
        visit("launch_overhead", device.launch_overhead, kKernelGapBounds);
      });
    case ParameterGroup::kGemm:
      return group_of("gemm.", [](DeviceModel& device, auto visit) {
        visit_parameters_of_gemm(device.gemm, visit);
      });
    case ParameterGroup::kForward:
      return group_of("attention.", [](DeviceModel& device, auto visit) {
        visit_parameters_of_pass("forward", device.attention.forward, visit);
        visit_shared_parameters_of_attention(device.attention, visit);
      });
    case ParameterGroup::kBackward:
      return group_of("attention.", [](DeviceModel& device, auto visit) {
        visit_parameters_of_pass("backward", device.attention.backward, visit);
      });
    case ParameterGroup::kFlashAttention2:
      return group_of("flash_attention_2.", [](DeviceModel& device, auto visit) {
        if (!device.flash_attention_2) device.flash_attention_2.emplace();
        visit_parameters_of_attention(*device.flash_attention_2, visit);
      });
    case ParameterGroup::kStreams:
      break;
  }
  const int family = group - static_cast<int>(ParameterGroup::kStreams);
  return stream_group(static_cast<StreamFamily>(family));
}

std::vector<int> groups_of(const Kernel& kernel, bool flash_attention_2) {
  const auto index = [](ParameterGroup group) { return static_cast<int>(group); };
  switch (kernel.kind) {
    case KernelKind::kGemm:
    case KernelKind::kGroupedGemm:
      return {index(ParameterGroup::kLaunch), index(ParameterGroup::kGemm)};
    case KernelKind::kAttention:
      if (flash_attention_2)
        return {index(ParameterGroup::kLaunch), index(ParameterGroup::kGemm),
                index(ParameterGroup::kFlashAttention2)};
      // Both passes share the ramp; the clocks are those of products.
      return {index(ParameterGroup::kLaunch), index(ParameterGroup::kGemm),
              index(ParameterGroup::kForward), index(ParameterGroup::kBackward)};
    case KernelKind::kMemoryBound:
    case KernelKind::kOptimizer:
      break;
  }
  const StreamFamily family = stream_family_of(kernel.routine, kernel.phase);
  return {index(ParameterGroup::kLaunch),
          index(ParameterGroup::kStreams) + static_cast<int>(family)};
}

}  // namespace meshwright
