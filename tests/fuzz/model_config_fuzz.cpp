/// Any text as a HuggingFace config.json: rejected with InputError, or a model with parameters.
#include "core/operators/local_parameters.hpp"
#include "fuzz_reader.hpp"
#include "models/families/load_model.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshwright;
  return fuzz_reader(data, size, [](std::string_view input) {
    const NamedText config{.name = "input", .where = "input", .text = std::string(input)};
    const LoadedModel loaded = load_model(config);
    MW_CHECK(!loaded.graph.layers.empty());
    MW_CHECK(parameter_count(loaded.graph) > 0);
    MW_CHECK(traits_of(loaded.graph).blocks == block_count(loaded.graph));
    load_transformer(config);
  });
}
