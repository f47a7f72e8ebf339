/// Any text as a Kineto trace: rejected with InputError, or a calibration that survives its file.
#include <cstddef>
#include <cstdint>

#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "models/kineto/import_kineto.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshwright;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const ImportedTrace imported = import_kineto(read_kineto_trace(text, "input"), {});
    const std::string file = to_json(imported.calibration);
    MW_CHECK(to_json(calibration_from_json(file, "again")) == file);
  } catch (const InputError&) {
  }
  return 0;
}
