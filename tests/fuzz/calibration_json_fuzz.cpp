/// Any text is rejected with InputError, or is a valid calibration that survives a round trip.
#include "core/cost/calibration.hpp"
#include "fuzz_reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshwright;
  return fuzz_reader(data, size, [](std::string_view input) {
    const Calibration calibration = calibration_from_json(input, "input");
    MW_CHECK(check_calibration(calibration, "").empty());
    calibration_from_json(to_json(calibration), "again");
  });
}
