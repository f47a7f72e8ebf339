/// Any text as a matrix of nvidia-smi topo -m: refused, or a sound cluster that its file gives
/// back.
#include <cstddef>
#include <cstdint>

#include "core/check.hpp"
#include "core/error.hpp"
#include "models/import.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshwright;
  static const NamedText like = find_cluster("dgx-h100");
  const NamedText source{.name = "input",
                         .where = "input",
                         .text = std::string(reinterpret_cast<const char*>(data), size)};
  try {
    const ImportedCluster imported = import_nvidia_smi(source, {.like = like, .nodes = 2});
    const NamedText again{
        .name = "input", .where = "again", .text = cluster_to_toml(imported.cluster)};
    MW_CHECK(cluster_from_toml(again) == imported.cluster);
  } catch (const InputError&) {
  }
  return 0;
}
