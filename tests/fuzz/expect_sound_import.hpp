/// Guarantee of every cluster importer for any bytes: rejected with InputError, or a valid cluster
/// that survives a round trip.
#pragma once

#include <string>

#include "fuzz_reader.hpp"
#include "models/import/import.hpp"
#include "models/load/load.hpp"

namespace meshwright {

template <class Import>
int expect_sound_import(const std::uint8_t* data, std::size_t size, Import import) {
  static const NamedText like = find_cluster("dgx-h100");
  return fuzz_reader(data, size, [&](std::string_view input) {
    const NamedText source{.name = "input", .where = "input", .text = std::string(input)};
    const ImportedCluster imported = import(source, {.like = like, .nodes = 2});
    const NamedText again{
        .name = "input", .where = "again", .text = cluster_to_toml(imported.cluster)};
    MW_CHECK(cluster_from_toml(again) == imported.cluster);
  });
}

}  // namespace meshwright
