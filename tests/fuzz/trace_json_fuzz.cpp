// Any bytes are read as trace events or rejected with InputError; anything else is a bug.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/error.hpp"
#include "core/formats/trace_events.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    meshwright::read_trace_events({reinterpret_cast<const char*>(data), size}, "fuzz");
  } catch (const meshwright::InputError&) {
  }
  return 0;
}
