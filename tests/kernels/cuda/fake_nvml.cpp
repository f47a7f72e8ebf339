// A library with NVML's functions, of a GPU at 0000:3b:00.0 with two of four links up.
#include <cstring>

extern "C" {
int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlSystemGetDriverVersion(char* version, unsigned) {
  std::strcpy(version, "580.159.04");
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** device) {
  static int gpu;
  *device = &gpu;
  return std::strcmp(bus, "0000:3b:00.0") == 0 ? 0 : 6;  // NVML_ERROR_NOT_FOUND
}
int nvmlDeviceGetClockInfo(void*, int kind, unsigned* clock) {
  *clock = kind == 1 ? 345 : 1;
  return 0;
}
int nvmlDeviceGetMaxClockInfo(void*, int kind, unsigned* clock) {
  *clock = kind == 1 ? 1980 : 1;
  return 0;
}
int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* milliwatts) {
  *milliwatts = 700000;
  return 0;
}
int nvmlDeviceGetNvLinkState(void*, unsigned link, unsigned* is_up) {
  *is_up = link % 2;
  return link < 4 ? 0 : 2;  // NVML_ERROR_INVALID_ARGUMENT
}
}
