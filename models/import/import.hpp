/// Imports the output of other programs as clusters and calibrations. All input is untrusted: sizes
/// are limited, and errors are InputErrors with file:line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/cluster/cluster.hpp"
#include "core/cost/calibration.hpp"
#include "models/text/named_text.hpp"

namespace meshwright {

enum class ImportFormat : std::uint8_t {
  kNvidiaSmi,     ///< `nvidia-smi topo -m`
  kNcclTopology,  ///< the XML of NCCL_TOPO_DUMP_FILE
  kNcclTests,     ///< output of nccl-tests, text or JSON
  kSlurm,         ///< topology.conf, or `scontrol show topology`
  kKineto         ///< trace of PyTorch's profiler (import_kineto.hpp)
};
inline constexpr int kImportFormatCount = 5;
std::string_view name_of(ImportFormat format);  ///< "nvidia-smi", "nccl-topology", …
std::optional<ImportFormat> import_format_from_name(std::string_view name);
/// Detects the format from the text; nullopt if it is not recognized.
std::optional<ImportFormat> guess_import_format(std::string_view text);

/// What the files do not contain: device speeds and the number of nodes.
struct ImportOptions {
  std::optional<NamedText> like;  ///< cluster to copy devices, ports and fabric from; absent: the
                                  ///< preset whose device has the same compute capability
  int nodes = 1;                  ///< number of such nodes; unused for Slurm, whose file has it
};

struct ImportedCluster {
  Cluster cluster;                 ///< passes check_cluster(), with a source for every value
  std::vector<std::string> notes;  ///< assumptions and omissions
};
ImportedCluster import_nvidia_smi(const NamedText& text, const ImportOptions& options);
ImportedCluster import_nccl_topology(const NamedText& xml, const ImportOptions& options);
/// Nodes and fabric levels from the switches; requires `like`, which describes a node.
ImportedCluster import_slurm(const NamedText& text, const ImportOptions& options);

struct ImportedCalibration {
  Calibration calibration;
  std::vector<std::string> notes;
};
/// `kind` is required if the output does not name its test (nccl-tests before 2.17).
ImportedCalibration import_nccl_tests(const NamedText& text, std::optional<CollectiveKind> kind);

}  // namespace meshwright
