/// Any text is rejected with InputError, or is a valid calibration that survives a round trip.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "core/cost/calibration.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshwright;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const Calibration calibration = calibration_from_json(text, "input");
    MW_CHECK(check_calibration(calibration, "").empty());
    calibration_from_json(to_json(calibration), "again");
  } catch (const InputError&) {
  }
  return 0;
}
