/// Imports the output of other programs as clusters, calibrations and jobs. All input is untrusted:
/// sizes are limited, and errors are InputErrors with file:line.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/cluster/cluster.hpp"
#include "core/cost/calibration.hpp"
#include "models/import/import_job.hpp"
#include "models/text/named_text.hpp"

namespace meshwright {

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

/// A file format that can be imported. A new one is a row of kImportFormats and a file with its
/// importer.
struct ImportFormat {
  std::string_view name;  ///< of --format
  std::string_view help;  ///< lines of at most 85 characters
  /// Recognizes the beginning of a file, in lower case.
  bool (*recognizes)(std::string_view head);
  /// Null, all three: a trace, see import_kineto.hpp.
  ImportedCluster (*cluster)(const NamedText& text, const ImportOptions& options) = nullptr;
  ImportedCalibration (*calibration)(const NamedText& text,
                                     std::optional<CollectiveKind> kind) = nullptr;
  ImportedJob (*job)(const NamedText& text, const JobImportOptions& options) = nullptr;
};
bool is_nvidia_smi(std::string_view head);
bool is_nccl_topology(std::string_view head);
bool is_nccl_tests(std::string_view head);
bool is_slurm(std::string_view head);
bool is_kineto(std::string_view head);
bool is_megatron(std::string_view head);
bool is_torchtitan(std::string_view head);

/// Of formats that recognize the same file, the last one is meant.
inline constexpr ImportFormat kImportFormats[]{
    {.name = "nvidia-smi",
     .help = "output of 'nvidia-smi topo -m'; without --like, the GPU type is guessed",
     .recognizes = is_nvidia_smi,
     .cluster = import_nvidia_smi},
    {.name = "nccl-topology",
     .help = "XML written by NCCL with NCCL_TOPO_DUMP_FILE=topo.xml",
     .recognizes = is_nccl_topology,
     .cluster = import_nccl_topology},
    {.name = "nccl-tests",
     .help = "text output, or JSON written with -J; gives a calibration",
     .recognizes = is_nccl_tests,
     .calibration = import_nccl_tests},
    {.name = "slurm",
     .help = "topology.conf, or output of 'scontrol show topology'; requires --like",
     .recognizes = is_slurm,
     .cluster = import_slurm},
    {.name = "kineto",
     .help = "trace of one rank by PyTorch's profiler with record_shapes=True, .json or\n"
             ".json.gz; gives a calibration: kernels by shape, collectives, host time",
     .recognizes = is_kineto},
    {.name = "megatron",
     .help = "launch script of Megatron-LM, or a list of its options; gives a plan",
     .recognizes = is_megatron,
     .job = import_megatron},
    {.name = "torchtitan",
     .help = "job file of torchtitan up to v0.2.2 (TOML); gives a plan",
     .recognizes = is_torchtitan,
     .job = import_torchtitan}};

/// Null if the name is unknown.
const ImportFormat* find_import_format(std::string_view name);
/// Detects the format from the text; null if it is not recognized.
const ImportFormat* guess_import_format(std::string_view text);

}  // namespace meshwright
