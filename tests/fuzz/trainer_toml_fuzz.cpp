/// Any text as a trainer profile: rejected with InputError, or a profile that survives a round
/// trip.
#include "fuzz_reader.hpp"
#include "models/load/trainer_toml.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshwright;
  return fuzz_reader(data, size, [](std::string_view input) {
    const NamedText toml{.name = "input", .where = "input", .text = std::string(input)};
    Trainer trainer = trainer_from_toml(toml);
    trainer.sources.clear();
    const NamedText again{.name = "input", .where = "again", .text = to_toml(trainer)};
    MW_CHECK(trainer_from_toml(again) == trainer);
  });
}
