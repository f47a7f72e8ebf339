/// Measures kernel launches, copies and device-to-device messages.
#pragma once

#include <vector>

#include "core/cost/calibration.hpp"
#include "executor/calibration/measure_messages.hpp"
#include "kernels/device.hpp"
#include "kernels/kernel_table.hpp"

namespace meshwright {

/// Large enough for a GPU; tests use smaller sizes.
struct DeviceSizes {
  Bytes copy = Bytes(std::int64_t{256} << 20);
  Bytes largest_message = Bytes(std::int64_t{64} << 20);
  int launches = 1000;
};

/// Figures of the first device, and the number of devices; medians of several rounds.
MeasuredGpu measure_gpu(const KernelTable& kernels, const DeviceTable& device,
                        const DeviceSizes& sizes = {});

/// Copies by size between the first two devices, or within the device if there is only one.
std::vector<CurvePoint> measure_device_messages(const DeviceTable& device,
                                                const DeviceSizes& sizes = {});
/// The shortest time as latency, the rate of the largest message as bandwidth.
MessageFigures figures_of(const std::vector<CurvePoint>& messages);

}  // namespace meshwright
