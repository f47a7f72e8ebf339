/// Any bytes as a checkpoint of `run`: rejected with InputError, or a state of the model that
/// survives a round trip.
#include "executor/checkpoint/checkpoint.hpp"
#include "fuzz_reader.hpp"
#include "models/load/load.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshwright;
  static const ModelGraph model = model_from_config(
      {.name = "tiny", .where = "tiny", .text = R"({"model_type": "mlp", "hidden_size": 2,
       "num_hidden_layers": 1, "vocab_size": 2})"});
  return fuzz_reader(data, size, [](std::string_view input) {
    const Checkpoint checkpoint = checkpoint_from_file(input, model, "input");
    MW_CHECK(checkpoint.step >= 0 && checkpoint.text_position >= 0);
    MW_CHECK(to_file(checkpoint_from_file(to_file(checkpoint, model), model, "again"), model) ==
             to_file(checkpoint, model));
  });
}
