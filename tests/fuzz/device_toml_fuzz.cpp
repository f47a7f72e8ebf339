/// Any text as a device file: rejected with InputError, or a valid device that survives a round
/// trip.
#include "fuzz_reader.hpp"
#include "models/load/load.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshwright;
  return fuzz_reader(data, size, [](std::string_view input) {
    const NamedText toml{.name = "input", .where = "input", .text = std::string(input)};
    const LoadedDevice loaded = device_from_toml(toml);
    MW_CHECK(check_device(loaded.device, "input").empty());
    const NamedText again{.name = "input", .where = "again", .text = device_to_toml(loaded)};
    const LoadedDevice reread = device_from_toml(again);
    MW_CHECK(reread.device == loaded.device);
    MW_CHECK(reread.sources == loaded.sources);
  });
}
