/// Any text as nccl-tests output is rejected, or is a valid calibration that survives a round trip.
#include <cstddef>
#include <cstdint>

#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "models/import/import.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshwright;

  const NamedText source{.name = "input",
                         .where = "input",
                         .text = std::string(reinterpret_cast<const char*>(data), size)};
  try {
    const ImportedCalibration imported = import_nccl_tests(source, CollectiveKind::kAllReduce);
    MW_CHECK(check_calibration(imported.calibration, "").empty());
    calibration_from_json(to_json(imported.calibration), "again");
  } catch (const InputError&) {
  }
  return 0;
}
