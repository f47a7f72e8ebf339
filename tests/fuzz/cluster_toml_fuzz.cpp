/// Any text as a cluster file: rejected with InputError, or a valid cluster that survives a round
/// trip.
#include "fuzz_reader.hpp"
#include "models/load/load.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshwright;
  return fuzz_reader(data, size, [](std::string_view input) {
    const NamedText toml{.name = "input", .where = "input", .text = std::string(input)};
    const Cluster cluster = cluster_from_toml(toml);
    MW_CHECK(check_cluster(cluster, "input").empty());
    MW_CHECK(device_count(cluster) > 0);
    const NamedText again{.name = "input", .where = "again", .text = cluster_to_toml(cluster)};
    MW_CHECK(cluster_from_toml(again) == cluster);
  });
}
