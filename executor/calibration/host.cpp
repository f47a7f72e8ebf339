#include "executor/calibration/host.hpp"

#include <sys/sysinfo.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <thread>

namespace meshwright {

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name"))
      if (const std::size_t colon = line.find(": "); colon != std::string::npos)
        return line.substr(colon + 2);
  return "unknown processor";
}

int core_count() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

std::optional<Bytes> host_memory() {
  struct sysinfo info {};
  if (::sysinfo(&info) != 0) return std::nullopt;
  return Bytes(static_cast<std::int64_t>(info.totalram) * static_cast<std::int64_t>(info.mem_unit));
}

std::optional<double> load_average() {
  double load = 0;
  if (::getloadavg(&load, 1) != 1) return std::nullopt;
  return load;
}

}  // namespace meshwright
