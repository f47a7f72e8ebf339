/// Any text as a CSV of measured collectives.
#include "fuzz_reader.hpp"
#include "simulator/fit/measured_collectives.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshwright;
  return fuzz_reader(data, size, [](std::string_view input) {
    for (const MeasuredCollective& row : read_measured_collectives(input, "fuzz.csv", "").rows)
      MW_CHECK(row.time > Seconds() && row.collective.group.ranks > 1);
  });
}
