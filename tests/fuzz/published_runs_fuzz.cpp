/// Any text as a file of published runs.
#include "fuzz_reader.hpp"
#include "models/load/published_runs.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshwright;
  return fuzz_reader(data, size, [](std::string_view input) {
    const NamedText toml{.name = "input", .where = "input", .text = std::string(input)};
    const PublishedSet set = published_set_from_toml(toml);
    for (const PublishedRun& run : set.runs) {
      MW_CHECK(run.model < set.models.size() && run.cluster < set.clusters.size());
      MW_CHECK(&find_run(set, run.id) == &run);
    }
  });
}
