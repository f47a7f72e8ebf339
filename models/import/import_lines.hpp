/// Untrusted text as numbered lines, for the importers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/units.hpp"
#include "models/import/import.hpp"
#include "models/text/printable_text.hpp"

namespace meshwright {

struct TextLine {
  int number = 1;
  std::string text;  ///< without line end and terminal colors
};

inline constexpr std::size_t kMostImportLines = 1'000'000, kLongestImportLine = 1 << 16;

/// InputError if there are too many lines, or one is too long.
std::vector<TextLine> lines_of(const NamedText& source);
/// Fields separated by spaces and tabs.
std::vector<std::string> words_of(std::string_view line);
/// Fields separated by tabs, trimmed, including empty ones; words_of() if the line has no tab.
std::vector<std::string> columns_of(std::string_view line);
std::string trimmed(std::string_view text);
std::string lower_case(std::string_view text);
bool contains(std::string_view text, std::string_view part);

std::optional<std::int64_t> whole_number(std::string_view text);  ///< all of it, no sign but '-'
std::optional<double> decimal_number(std::string_view text);      ///< all of it, finite

/// "file:line".
std::string place_of(const NamedText& source, int line);
[[noreturn]] void refuse(const NamedText& source, int line, std::string what, std::string hint);

/// The cluster from which an import copies device, ports and fabric.
struct Template {
  Cluster cluster;
  std::string name;  ///< for sources: "dgx-h100"
};
/// options.like, or else the first preset whose device has this compute capability. InputError at
/// `where` if no preset has.
Template template_for(const ImportOptions& options, int compute_capability,
                      const std::string& where);

/// Throws InputError if check_cluster() finds problems.
void require_sound(const Cluster& cluster, const std::string& where);

struct ImportedFile {
  std::string_view format;  ///< for sources: "NCCL topology"
  const std::string& where;
};
/// A cluster of `options.nodes` nodes like `node` and of its name, with the device, the fabric and,
/// if the file has no speed for them, the ports of the template. Sources of copied values name it.
/// Throws InputError if check_cluster() finds problems.
Cluster cluster_with_node(const Template& from, NodeModel node, const ImportOptions& options,
                          const ImportedFile& file);

/// NVLink bandwidth per link and direction: 25 GB/s up to Hopper, 50 GB/s on Blackwell. NVIDIA
/// datasheets, bidirectional: V100 300 GB/s over 6 links, A100 600 over 12, H100 900 over 18, B200
/// 1800 over 18.
BytesPerSecond nvlink_rate(int compute_capability);

}  // namespace meshwright
