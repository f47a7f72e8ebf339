#include "kernels/device/backend_plugin.hpp"

#include <gtest/gtest.h>

#include "kernels/device.hpp"
#include "kernels/device/activity.hpp"
#include "kernels/for_each_kernel.hpp"

namespace meshwright {
namespace {

// Without a driver the plug-in still loads and reports what is missing.
TEST(CudaPlugin, ReportsWhatIsMissingOrHasADevice) {
  const BackendPlugin& plugin = backend_plugin(Backend::kCuda);
  EXPECT_FALSE(plugin.path.empty());
  if (plugin.exports == nullptr) {
    EXPECT_NE(plugin.missing.find("plug-in"), std::string::npos) << plugin.missing;
    return;
  }
  EXPECT_EQ(plugin.missing.empty(), plugin.exports->device.count() > 0) << plugin.missing;
}

TEST(CudaPlugin, RefusesAPluginWithOtherHeaders) {
  EXPECT_TRUE(is_of_this_build({.kernels = {}, .device = {}}));
  EXPECT_FALSE(is_of_this_build({.interface = kPluginInterface - 1, .kernels = {}, .device = {}}));
  EXPECT_FALSE(is_of_this_build({.device_table_size = 0, .kernels = {}, .device = {}}));
  EXPECT_FALSE(is_of_this_build(  // another list of kernels
      {.kernel_list = kernel_list_hash() + 1, .kernels = {}, .device = {}}));
}

TEST(CudaPlugin, HasEveryKernel) {
  if (backend_plugin(Backend::kCuda).exports == nullptr)
    GTEST_SKIP() << backend_plugin(Backend::kCuda).missing;
  const KernelTable& kernels = backend_plugin(Backend::kCuda).exports->kernels;
  EXPECT_EQ(kernels.backend, Backend::kCuda);
  for_each_kernel([&](auto row) { EXPECT_NE((kernels.*row.entry).run, nullptr) << row.name; });
}

TEST(CudaPlugin, ReturnsNullForUnknownSymbols) {
  EXPECT_EQ(plugin_symbol(Backend::kCuda, "meshwright_no_such_function"), nullptr);
}

// Without a driver or CUPTI: an error message, and the run continues.
TEST(CudaPlugin, ReportsWhyRecordingIsUnavailable) {
  const ActivityTable* recorder = activity_table(Backend::kCuda);
  if (recorder == nullptr) GTEST_SKIP() << "no GPU plug-in, or built without CUPTI's header";
  const std::string missing = recorder->start();
  if (!backend_plugin(Backend::kCuda).missing.empty()) {
    EXPECT_NE(missing, "");
    return;
  }
  if (!missing.empty()) GTEST_SKIP() << missing;
  const PluginExports& cuda = *backend_plugin(Backend::kCuda).exports;
  cuda.device.select(0);
  void* memory = cuda.device.allocate(Bytes(4096), nullptr);
  recorder->enter(7);
  cuda.kernels.fill({}, {.y = {memory, 1024, Dtype::kFp32}, .value = 1});
  recorder->leave();
  cuda.device.wait_for_stream(nullptr);
  const std::vector<DeviceActivity> activities = recorder->stop();
  cuda.device.release(memory, nullptr);
  ASSERT_EQ(activities.size(), 1u);
  EXPECT_EQ(activities.front().task, 7u);
  EXPECT_LT(activities.front().start, activities.front().end);
}

/// Properties of every device.
void expect_moves_memory(const DeviceTable& device) {
  const std::vector<float> there{1, 2, 3, 4};
  std::vector<float> back(4);
  void* stream = device.create_stream();
  void* memory = device.allocate(Bytes(16), stream);
  void* before = device.create_event();
  void* after = device.create_event();
  device.record(before, stream);
  device.copy(memory, there.data(), Bytes(16), stream);
  device.copy(back.data(), memory, Bytes(16), stream);
  device.record(after, stream);
  device.wait_for_event(after);
  EXPECT_TRUE(device.is_complete(after));
  EXPECT_GE(device.elapsed(before, after), Seconds(0));
  EXPECT_EQ(back, there);
  device.fill(memory, 0, Bytes(8), stream);
  device.copy(back.data(), memory, Bytes(16), stream);
  device.wait_for_stream(stream);
  EXPECT_EQ(back, (std::vector<float>{0, 0, 3, 4}));
  device.release(memory, stream);
  device.destroy_event(before);
  device.destroy_event(after);
  device.destroy_stream(stream);
}

TEST(HostDevice, CopiesInStreamOrder) { expect_moves_memory(host_device()); }
TEST(CudaDevice, CopiesInStreamOrder) {
  if (!backend_plugin(Backend::kCuda).missing.empty())
    GTEST_SKIP() << backend_plugin(Backend::kCuda).missing;
  expect_moves_memory(backend_plugin(Backend::kCuda).exports->device);
  EXPECT_FALSE(backend_plugin(Backend::kCuda).exports->device.describe(0).name.empty());
}

}  // namespace
}  // namespace meshwright
