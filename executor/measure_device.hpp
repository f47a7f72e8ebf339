/// Times what a device does beside kernels: launches, copies, and messages between devices.
#pragma once

#include <vector>

#include "core/calibration.hpp"
#include "executor/measure_messages.hpp"
#include "kernels/device.hpp"
#include "kernels/kernel_table.hpp"

namespace meshwright {

/// Large enough for a GPU; tests of this take less.
struct DeviceSizes {
  Bytes copy = Bytes(std::int64_t{256} << 20);
  Bytes largest_message = Bytes(std::int64_t{64} << 20);
  int launches = 1000;
};

/// Of the first device and how many there are; medians of several rounds.
MeasuredGpu measure_gpu(const KernelTable& kernels, const DeviceTable& device,
                        const DeviceSizes& sizes = {});

/// Copies between the first two devices, else within the one that ranks share, by size.
std::vector<CurvePoint> measure_device_messages(const DeviceTable& device,
                                                const DeviceSizes& sizes = {});
/// The shortest of the times, and the rate of the largest message.
MessageFigures figures_of(const std::vector<CurvePoint>& messages);

}  // namespace meshwright
