/// Any text is rejected with InputError, or is a plan file that survives another round trip.
#include "core/formats/plan.hpp"
#include "fuzz_reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshwright;
  return fuzz_reader(data, size, [](std::string_view input) {
    const PlanFile file = plan_file_from_json(input, "input");
    MW_CHECK(plan_file_from_json(to_json(file), "again") == file);
  });
}
