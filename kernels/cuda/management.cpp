#include "kernels/cuda/management.hpp"

#include <array>

#include "kernels/device/loaded_library.hpp"

namespace meshwright::cuda {
namespace {

// Declarations from NVIDIA's "NVML API Reference Guide": its header is not part of every toolkit.
using Device = void*;
using Result = int;  ///< 0: success
constexpr int kSmClock = 1;
constexpr unsigned kMostLinks = 18;

struct Library {
  Result (*init)() = nullptr;
  Result (*shutdown)() = nullptr;
  Result (*driver_version)(char*, unsigned) = nullptr;
  Result (*device_at)(const char* pci_bus_id, Device*) = nullptr;
  Result (*clock)(Device, int, unsigned*) = nullptr;
  Result (*most_clock)(Device, int, unsigned*) = nullptr;
  Result (*power_limit)(Device, unsigned* milliwatts) = nullptr;
  Result (*link_state)(Device, unsigned link, unsigned* is_up) = nullptr;
  std::string missing;
};

Library open(const char* file) {
  Library l;
  LoadedLibrary opened("NVML", file);
  opened.find(l.init, "nvmlInit_v2");
  opened.find(l.shutdown, "nvmlShutdown");
  opened.find(l.driver_version, "nvmlSystemGetDriverVersion");
  opened.find(l.device_at, "nvmlDeviceGetHandleByPciBusId_v2");
  opened.find(l.clock, "nvmlDeviceGetClockInfo");
  opened.find(l.most_clock, "nvmlDeviceGetMaxClockInfo");
  opened.find(l.power_limit, "nvmlDeviceGetEnforcedPowerLimit");
  opened.find(l.link_state, "nvmlDeviceGetNvLinkState");
  l.missing = opened.missing();
  return l;
}

void append(std::string& text, const std::string& more) {
  if (!text.empty()) text += ", ";
  text += more;
}

std::string state_by(const Library& l, const std::string& pci_bus_id) {
  std::string text;
  std::array<char, 96> version{};
  if (l.driver_version(version.data(), version.size()) == 0)
    append(text, std::string("driver ") + version.data());
  Device device = nullptr;
  if (l.device_at(pci_bus_id.c_str(), &device) != 0) return text;
  unsigned now = 0, most = 0;
  if (l.clock(device, kSmClock, &now) == 0 && l.most_clock(device, kSmClock, &most) == 0)
    append(text, "SM clock " + std::to_string(now) + " of " + std::to_string(most) + " MHz");
  constexpr unsigned kMilliwatts = 1000;
  if (unsigned limit = 0; l.power_limit(device, &limit) == 0)
    append(text, "power limit " + std::to_string(limit / kMilliwatts) + " W");
  int links = 0;
  for (unsigned link = 0; link < kMostLinks; ++link)
    if (unsigned is_up = 0; l.link_state(device, link, &is_up) == 0 && is_up != 0) ++links;
  append(text,
         links == 0 ? "no NVLink" : std::to_string(links) + (links == 1 ? " NVLink" : " NVLinks"));
  return text;
}

}  // namespace

std::string state_of_gpu(const std::string& pci_bus_id, const char* library) {
  const Library l = open(library);
  if (!l.missing.empty()) return l.missing;
  if (l.init() != 0) return "NVML cannot be started";
  std::string text = state_by(l, pci_bus_id);
  l.shutdown();
  return text;
}

}  // namespace meshwright::cuda
