// Any bytes are read as trace events or rejected with InputError; anything else is a bug.
#include "core/formats/trace_events.hpp"
#include "fuzz_reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshwright;
  return fuzz_reader(data, size, [](std::string_view input) { read_trace_events(input, "fuzz"); });
}
