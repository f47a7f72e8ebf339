/// Any text as NCCL's topology XML.
#include "expect_sound_import.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return meshwright::expect_sound_import(data, size, meshwright::import_nccl_topology);
}
