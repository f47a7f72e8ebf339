/// Any text as a matrix of nvidia-smi topo -m.
#include "expect_sound_import.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return meshwright::expect_sound_import(data, size, meshwright::import_nvidia_smi);
}
