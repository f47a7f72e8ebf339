/// Any text is rejected with InputError, or is a plan file that survives another round trip.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "core/formats/plan.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshwright;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const PlanFile file = plan_file_from_json(text, "input");
    MW_CHECK(plan_file_from_json(to_json(file), "again") == file);
  } catch (const InputError&) {
  }
  return 0;
}
