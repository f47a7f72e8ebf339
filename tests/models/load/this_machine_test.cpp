#include "models/load/this_machine.hpp"

#include <gtest/gtest.h>

namespace meshwright {
namespace {

Calibration measured() {
  Calibration calibration;
  calibration.machine = MeasuredMachine{.processor = "NVIDIA H200",
                                        .cores = 16,
                                        .memory = Bytes(std::int64_t{141} << 30),
                                        .message_latency = Seconds(3e-6),
                                        .message_bandwidth = BytesPerSecond(2e12),
                                        .memory_bandwidth = BytesPerSecond(4e12),
                                        .peak = {{Dtype::kBf16, FlopsPerSecond(7e14)}}};
  return calibration;
}

TEST(ThisMachine, HasCoresThatShareItsMemory) {
  const Cluster cluster = cluster_of(measured());
  const DeviceModel& core = cluster.devices.at("core");
  EXPECT_EQ(core.memory, Bytes((std::int64_t{141} << 30) / 16));
  EXPECT_EQ(cluster.nodes.at("machine").device, "core");
}

// Measurements on a GPU are those of one device; copies have the slower of the two bandwidths.
TEST(ThisMachine, HasTheGpuThatWasMeasured) {
  Calibration calibration = measured();
  calibration.machine->gpu = MeasuredGpu{.count = 2,
                                         .launch_overhead = Seconds(2e-6),
                                         .to_device = BytesPerSecond(5e10),
                                         .from_device = BytesPerSecond(4e10),
                                         .memory = BytesPerSecond(4e12)};
  const Cluster cluster = cluster_of(calibration);
  const DeviceModel& gpu = cluster.devices.at("gpu");
  EXPECT_EQ(gpu.name, "NVIDIA H200");
  EXPECT_EQ(gpu.memory, Bytes(std::int64_t{141} << 30));
  EXPECT_EQ(gpu.launch_overhead, Seconds(2e-6));
  const NodeModel& node = cluster.nodes.at("machine");
  EXPECT_EQ(node.device, "gpu");
  EXPECT_EQ(node.host->device_link, BytesPerSecond(4e10));
  EXPECT_EQ(node.device_count, kMostRanksOfThisMachine);
}

}  // namespace
}  // namespace meshwright
