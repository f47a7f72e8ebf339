/// Any text as a recipe of `run`: rejected with InputError, or options with places and values.
#include "fuzz_reader.hpp"
#include "models/load/recipe.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshwright;
  return fuzz_reader(data, size, [](std::string_view input) {
    for (const RecipeEntry& entry :
         recipe_from_toml({.name = "input", .where = "input", .text = std::string(input)}))
      MW_CHECK(entry.where.starts_with("input:") && (!entry.is_on || entry.values.empty()));
  });
}
