/// Any text as nccl-tests output is rejected, or is a valid calibration that survives a round trip.
#include "fuzz_reader.hpp"
#include "models/import/import.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshwright;
  return fuzz_reader(data, size, [](std::string_view input) {
    const ImportedCalibration imported =
        import_nccl_tests({.name = "input", .where = "input", .text = std::string(input)},
                          CollectiveKind::kAllReduce);
    MW_CHECK(check_calibration(imported.calibration, "").empty());
    calibration_from_json(to_json(imported.calibration), "again");
  });
}
