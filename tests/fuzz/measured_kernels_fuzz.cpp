/// Any text as a CSV of measured kernels.
#include <cstdint>
#include <string_view>

#include "core/base/error.hpp"
#include "simulator/fit/measured_kernels.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    meshwright::read_measured_kernels({reinterpret_cast<const char*>(data), size}, "fuzz.csv", "");
  } catch (const meshwright::InputError&) {
  }
  return 0;
}
