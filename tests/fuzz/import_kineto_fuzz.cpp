/// Any text as a Kineto trace: rejected with InputError, or a calibration that survives its file.
#include "fuzz_reader.hpp"
#include "models/kineto/import_kineto.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshwright;
  return fuzz_reader(data, size, [](std::string_view input) {
    const ImportedTrace imported = import_kineto(read_kineto_trace(input, "input"), {});
    const std::string file = to_json(imported.calibration);
    MW_CHECK(to_json(calibration_from_json(file, "again")) == file);
  });
}
