#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/cluster/device_parameters.hpp"
#include "models/load/load.hpp"
#include "tests/complaints.hpp"

namespace meshwright {
namespace {

using ::testing::HasSubstr;

const std::string kDatasheet =
    "schema = 1\n"
    "name = \"X100\"\n"
    "memory = \"80 GiB\"\n"
    "memory_bandwidth = \"2 TB/s\"\n"
    "launch_overhead = \"1.5 us\"\n"
    "multiprocessors = 100\n"
    "source = \"X100 datasheet\"\n"
    "[peak]\n"
    "bf16 = \"300 TFLOP/s\"\n"
    "nvfp4 = \"1200 TFLOP/s\"\n";

LoadedDevice device_in(const std::string& text) {
  return device_from_toml({.name = "x100", .where = "x100.toml", .text = text});
}

std::string complaint_of(const std::string& text) {
  const auto found = diagnostics_of([&] { device_in(text); });
  return found.empty() ? "no error" : format(found.front());
}

TEST(DeviceFile, NeedsNoMoreThanTheDatasheet) {
  const LoadedDevice loaded = device_in(kDatasheet);
  EXPECT_EQ(loaded.device.gemm, GemmEfficiency{});
  EXPECT_EQ(loaded.device.attention, AttentionEfficiency{});
  EXPECT_EQ(loaded.sources.at("multiprocessors"), "X100 datasheet");
  EXPECT_EQ(peak_of(loaded.device, ProductFormat::kNvfp4), FlopsPerSecond(1200e12));
  EXPECT_EQ(peak_of(loaded.device, ProductFormat::kMxfp8), std::nullopt);
}

// Every parameter gets a value that is not its default and that no other one has.
TEST(DeviceFile, IsReadBackAsWritten) {
  LoadedDevice loaded = device_in(kDatasheet);
  DeviceModel& device = loaded.device;
  double next = 0.101;
  const auto change = [&](std::string_view, auto& value, ParameterBounds) {
    using Value = std::remove_reference_t<decltype(value)>;
    next += 0.003;
    if constexpr (std::is_same_v<Value, Seconds>)
      value = Seconds(next * 1e-4);
    else if constexpr (std::is_same_v<Value, Bytes>)
      value = Bytes(static_cast<std::int64_t>(next * 1e7));
    else
      value = next;
  };
  visit_parameters_of_gemm(device.gemm, change);
  visit_parameters_of_stream(device.memory_efficiency, change);
  for (auto& stream : device.streams) visit_parameters_of_stream(stream.emplace(), change);
  visit_parameters_of_attention(device.attention, change);
  visit_parameters_of_attention(device.flash_attention_2.emplace(), change);
  device.gemm.tile_m = 192;
  device.kernels = KernelLibrary::kOwn;
  device.compute_capability = 90;
  device.design_power = Watts(700);
  device.power_limit = Watts(500.5);
  loaded.sources["memory_efficiency.norm-backward.max_efficiency"] = "measured, \"quoted\"";
  loaded.sources["attention.forward_head_64"] = "a fit";
  const LoadedDevice again = device_in(device_to_toml(loaded, {"a note"}));
  EXPECT_EQ(again.device, device);
  EXPECT_EQ(again.sources, loaded.sources);
}

TEST(DeviceFile, LimitsThePowerToThatOfTheDesign) {
  const auto with_power = [](const std::string& lines) {
    std::string text = kDatasheet;
    return complaint_of(text.insert(text.find("[peak]"), lines));
  };
  EXPECT_EQ(with_power("design_power = \"0.7 kW\"\npower_limit = \"500 W\"\n"), "no error");
  EXPECT_EQ(
      with_power("design_power = \"700 W\"\npower_limit = \"1 kW\"\n"),
      "error: x100.toml.power_limit: must not exceed the design power of 700 W, got 1000 W\n");
  EXPECT_THAT(with_power("power_limit = \"500 W\"\n"), HasSubstr("requires the design power"));
}

TEST(DeviceFile, ReportsWhatIsWrong) {
  EXPECT_EQ(complaint_of(kDatasheet + "[gemm]\nmax_eficiency = 0.8\n"),
            "error: x100.toml:12:1: unknown key 'gemm.max_eficiency'\n"
            "  hint: did you mean 'max_efficiency', 'long_efficiency', 'sustained_efficiency'?\n");
  EXPECT_THAT(complaint_of(kDatasheet + "[gemm]\nmax_efficiency = 1.2\n"),
              HasSubstr("'gemm.max_efficiency' must be greater than 0 and at most 1, got 1.2"));
  EXPECT_THAT(complaint_of(kDatasheet + "[gemm]\ntile_edge = -1\n"),
              HasSubstr("'gemm.tile_edge' must be between 0 and 1000, got -1"));
  EXPECT_THAT(complaint_of(kDatasheet + "[memory_efficiency.norms]\nmax_efficiency = 0.8\n"),
              HasSubstr("unknown key 'memory_efficiency.norms'"));
  EXPECT_THAT(complaint_of("schema = 1\n"), HasSubstr("missing key 'memory'"));
}

TEST(DeviceFile, IsFoundByNameOrPath) {
  EXPECT_THROW(find_device("a100-smx"), InputError);
  EXPECT_EQ(find_device("l4").where, "preset l4");
}

TEST(DevicePresets, AreSoundAndSayWhereTheirFiguresAreFrom) {
  for (const std::string& name : device_preset_names()) {
    SCOPED_TRACE(name);
    const LoadedDevice loaded = device_from_toml(find_device(name));
    for (const std::string figure :
         {"memory", "memory_bandwidth", "launch_overhead", "multiprocessors", "gemm.max_efficiency",
          "gemm.sustained_efficiency", "gemm.tile_m", "memory_efficiency.max_efficiency",
          "attention.forward", "attention.backward"})
      EXPECT_TRUE(loaded.sources.contains(figure)) << figure;
    const GemmEfficiency& gemm = loaded.device.gemm;
    EXPECT_LE(gemm.sustained_efficiency.value_or(0), gemm.max_efficiency);
  }
}

}  // namespace
}  // namespace meshwright
