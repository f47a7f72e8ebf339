/// What NVIDIA's management library (NVML, part of the driver) says of a GPU, which CUDA does not.
#pragma once

#include <string>

namespace meshwright::cuda {

/// "driver 580.159.04, SM clock 345 of 1980 MHz, power limit 700 W, 18 NVLinks"; what NVML does not
/// know is left out. `pci_bus_id`: "0000:3b:00.0", by cudaDeviceGetPCIBusId(). If NVML cannot be
/// used, why.
std::string state_of_gpu(const std::string& pci_bus_id, const char* library = "libnvidia-ml.so.1");

}  // namespace meshwright::cuda
