/// Any bytes as token files: plain, with the header of llm.c, or with an index of Megatron-LM.
/// Rejected with InputError, or every token can be read. The first byte selects the token type and
/// whether there is an index; then two bytes give the size of the index, which comes first.
#include <algorithm>
#include <array>

#include "cli/run/token_input.hpp"
#include "fuzz_file.hpp"
#include "fuzz_reader.hpp"
#include "models/load/load.hpp"

namespace meshwright {
namespace {

constexpr std::size_t kHeader = 3;

void read(std::string_view input) {
  static const ModelGraph model = model_from_config(find_model("gpt2"));
  static const FuzzFile file("tokens.bin");
  static const std::array<std::string, 3> kTypes{"", "uint16", "uint32"};
  if (input.size() < kHeader) return;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(input[i]); };
  const std::size_t wanted = byte(0) % 2 == 0 ? 0 : byte(1) + std::size_t{256} * byte(2);
  const std::size_t index = std::min(wanted, input.size() - kHeader);
  file.write_beside(".idx", input.substr(kHeader, index));
  file.write(input.substr(kHeader + index));
  const TokenText text = words_of_tokens({file.path()}, kTypes[byte(0) / 2 % kTypes.size()], model);
  MW_CHECK(text.files.size() == 1);
  for (std::int64_t i = 0; i < text.size(); ++i)
    MW_CHECK(text.at(i) >= 0 && text.at(i) < traits_of(model).vocabulary);
}

}  // namespace
}  // namespace meshwright

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return meshwright::fuzz_reader(data, size, meshwright::read);
}
