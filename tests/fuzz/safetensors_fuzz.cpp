/// Any bytes are rejected with InputError, or are tensors that survive a round trip.
#include "core/formats/safetensors.hpp"
#include "fuzz_reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshwright;
  return fuzz_reader(data, size, [](std::string_view input) {
    const TensorFile file = tensors_from_safetensors(input, "input");
    const TensorFile again = tensors_from_safetensors(to_safetensors(file), "again");
    MW_CHECK(again.tensors.size() == file.tensors.size() && again.metadata == file.metadata);
  });
}
