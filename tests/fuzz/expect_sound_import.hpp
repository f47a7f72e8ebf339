/// Guarantee of every cluster importer for any bytes: rejected with InputError, or a valid cluster
/// that survives a round trip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "models/import/import.hpp"
#include "models/load/load.hpp"

namespace meshwright {

template <class Import>
void expect_sound_import(const std::uint8_t* data, std::size_t size, Import import) {
  static const NamedText like = find_cluster("dgx-h100");
  const NamedText source{.name = "input",
                         .where = "input",
                         .text = std::string(reinterpret_cast<const char*>(data), size)};
  try {
    const ImportedCluster imported = import(source, {.like = like, .nodes = 2});
    const NamedText again{
        .name = "input", .where = "again", .text = cluster_to_toml(imported.cluster)};
    MW_CHECK(cluster_from_toml(again) == imported.cluster);
  } catch (const InputError&) {
  }
}

}  // namespace meshwright
