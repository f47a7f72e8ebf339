/// Any text as a CSV of measured kernels.
#include "fuzz_reader.hpp"
#include "simulator/fit/measured_kernels.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshwright;
  return fuzz_reader(data, size,
                     [](std::string_view input) { read_measured_kernels(input, "fuzz.csv", ""); });
}
