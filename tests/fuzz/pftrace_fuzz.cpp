/// Any bytes are rejected with InputError, or are a timeline that survives another round trip.
#include "core/formats/pftrace.hpp"
#include "fuzz_reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshwright;
  return fuzz_reader(data, size, [](std::string_view input) {
    const Timeline timeline = timeline_from_pftrace(input, "input");
    MW_CHECK(timeline_from_pftrace(to_pftrace(timeline), "again") == timeline);
  });
}
