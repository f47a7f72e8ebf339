// Bytes → trace events. Anything but InputError is a finding.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/error.hpp"
#include "core/io_trace_events.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    meshwright::read_trace_events({reinterpret_cast<const char*>(data), size}, "fuzz");
  } catch (const meshwright::InputError&) {
  }
  return 0;
}
