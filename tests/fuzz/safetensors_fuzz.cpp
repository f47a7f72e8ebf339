/// Any bytes are rejected with InputError, or are tensors that survive a round trip.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "core/formats/safetensors.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshwright;
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  try {
    const TensorFile file = tensors_from_safetensors(content, "input");
    const TensorFile again = tensors_from_safetensors(to_safetensors(file), "again");
    MW_CHECK(again.tensors.size() == file.tensors.size() && again.metadata == file.metadata);
  } catch (const InputError&) {
  }
  return 0;
}
