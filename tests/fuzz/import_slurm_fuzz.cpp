/// Any text as Slurm switches.
#include "expect_sound_import.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return meshwright::expect_sound_import(data, size, meshwright::import_slurm);
}
