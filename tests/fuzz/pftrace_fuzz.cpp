/// Any bytes are rejected with InputError, or are a timeline that survives another round trip.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "core/formats/pftrace.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshwright;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const Timeline timeline = timeline_from_pftrace(bytes, "input");
    MW_CHECK(timeline_from_pftrace(to_pftrace(timeline), "again") == timeline);
  } catch (const InputError&) {
  }
  return 0;
}
