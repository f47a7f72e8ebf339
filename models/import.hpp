/// What other programs wrote about machines → clusters and calibrations. All input is untrusted:
/// sizes are capped, and what is wrong is an InputError with file:line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/calibration.hpp"
#include "core/cluster.hpp"
#include "models/load.hpp"

namespace meshwright {

enum class ImportFormat : std::uint8_t {
  kNvidiaSmi,     ///< `nvidia-smi topo -m`
  kNcclTopology,  ///< the XML of NCCL_TOPO_DUMP_FILE
  kNcclTests,     ///< output of nccl-tests, text or JSON
  kSlurm          ///< topology.conf, or `scontrol show topology`
};
inline constexpr int kImportFormatCount = 4;
std::string_view name_of(ImportFormat format);  ///< "nvidia-smi", "nccl-topology", …
std::optional<ImportFormat> import_format_from_name(std::string_view name);
/// By what stands in the text; nothing if no format is recognised.
std::optional<ImportFormat> guess_import_format(std::string_view text);

/// What the files do not say: how fast devices are, and how many nodes there are.
struct ImportOptions {
  std::optional<NamedText> like;  ///< a cluster whose device, ports and fabric are taken; absent:
                                  ///< the preset whose device has the same compute capability
  int nodes = 1;                  ///< nodes like the one described; Slurm's file says it itself
};

struct ImportedCluster {
  Cluster cluster;                 ///< sound (check_cluster), with a source for every figure
  std::vector<std::string> notes;  ///< what was assumed or left out
};
ImportedCluster import_nvidia_smi(const NamedText& text, const ImportOptions& options);
ImportedCluster import_nccl_topology(const NamedText& xml, const ImportOptions& options);
/// Nodes and fabric levels from the switches; `like` is needed, for what a node is.
ImportedCluster import_slurm(const NamedText& text, const ImportOptions& options);

struct ImportedCalibration {
  Calibration calibration;
  std::vector<std::string> notes;
};
/// `kind` for outputs that do not name their test (nccl-tests before 2.17).
ImportedCalibration import_nccl_tests(const NamedText& text, std::optional<CollectiveKind> kind);

/// A cluster file that cluster_from_toml() reads back as an equal cluster. Every note becomes a
/// comment at its head.
std::string cluster_to_toml(const Cluster& cluster, const std::vector<std::string>& notes = {});

}  // namespace meshwright
