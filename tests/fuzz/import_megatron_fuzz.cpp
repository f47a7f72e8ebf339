/// Any text as a launch of Megatron-LM.
#include "fuzz_reader.hpp"
#include "models/import/import_job.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return meshwright::fuzz_reader(data, size, [](std::string_view text) {
    meshwright::import_megatron({.name = "x", .where = "x", .text = std::string(text)},
                                {.model = {}, .gpus = 8});
  });
}
