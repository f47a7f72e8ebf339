#include "kernels/device/cuda_library.hpp"

#include <gtest/gtest.h>

#include "kernels/device.hpp"
#include "kernels/device/activity.hpp"
#include "kernels/for_each_kernel.hpp"

namespace meshwright {
namespace {

// Without a driver the plug-in still loads and reports what is missing.
TEST(CudaLibrary, ReportsWhatIsMissingOrHasADevice) {
  const CudaLibrary& library = cuda_library();
  EXPECT_FALSE(library.path.empty());
  if (library.exports == nullptr) {
    EXPECT_NE(library.missing.find("plug-in"), std::string::npos) << library.missing;
    return;
  }
  EXPECT_EQ(library.missing.empty(), library.exports->device.count() > 0) << library.missing;
}

TEST(CudaLibrary, RefusesAPluginWithOtherHeaders) {
  EXPECT_TRUE(is_of_this_build({.kernels = {}, .device = {}}));
  EXPECT_FALSE(is_of_this_build({.interface = kCudaInterface - 1, .kernels = {}, .device = {}}));
  EXPECT_FALSE(is_of_this_build({.device_table_size = 0, .kernels = {}, .device = {}}));
  EXPECT_FALSE(is_of_this_build(  // the same kernels in another order
      {.kernel_list = kernel_list_hash() + 1, .kernels = {}, .device = {}}));
}

TEST(CudaLibrary, HasEveryKernel) {
  if (cuda_library().exports == nullptr) GTEST_SKIP() << cuda_library().missing;
  const KernelTable& kernels = cuda_library().exports->kernels;
  EXPECT_EQ(kernels.backend, Backend::kCuda);
  for_each_kernel([&](auto row) { EXPECT_NE((kernels.*row.entry).run, nullptr) << row.name; });
}

TEST(CudaLibrary, ReturnsNullForUnknownSymbols) {
  EXPECT_EQ(cuda_symbol("meshwright_no_such_function"), nullptr);
}

// Without a driver or CUPTI: an error message, and the run continues.
TEST(CudaLibrary, ReportsWhyRecordingIsUnavailable) {
  const ActivityTable* recorder = activity_table();
  if (recorder == nullptr) GTEST_SKIP() << "no GPU plug-in, or built without CUPTI's header";
  const std::string missing = recorder->start();
  if (!cuda_library().missing.empty()) {
    EXPECT_NE(missing, "");
    return;
  }
  if (!missing.empty()) GTEST_SKIP() << missing;
  const CudaExports& cuda = *cuda_library().exports;
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
  if (!cuda_library().missing.empty()) GTEST_SKIP() << cuda_library().missing;
  expect_moves_memory(cuda_library().exports->device);
  EXPECT_FALSE(cuda_library().exports->device.describe(0).name.empty());
}

}  // namespace
}  // namespace meshwright
