/// Untrusted text as numbered lines, for the importers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/units.hpp"
#include "models/import.hpp"

namespace meshwright {

struct TextLine {
  int number = 1;
  std::string text;  ///< without line end and terminal colours
};

inline constexpr std::size_t kMostImportLines = 1'000'000, kLongestImportLine = 1 << 16;

/// InputError if there are too many lines, or one is too long.
std::vector<TextLine> lines_of(const NamedText& source);
/// Parts between spaces and tabs.
std::vector<std::string> words_of(std::string_view line);
/// Parts between tabs; if there is no tab, between two spaces or more. Trimmed, empty ones kept.
std::vector<std::string> columns_of(std::string_view line);
std::string trimmed(std::string_view text);
std::string lower_case(std::string_view text);
/// Cut to 60 characters, without control characters: for messages and sources.
std::string printable_text(std::string_view text);

std::optional<std::int64_t> whole_number(std::string_view text);  ///< all of it, no sign but '-'
std::optional<double> decimal_number(std::string_view text);      ///< all of it, finite

/// "file:line".
std::string place_of(const NamedText& source, int line);
[[noreturn]] void refuse(const NamedText& source, int line, std::string what, std::string hint);

/// The cluster whose device, ports and fabric an import takes.
struct Template {
  Cluster cluster;
  std::string name;  ///< for sources: "dgx-h100"
};
/// options.like, or the first preset whose device has this compute capability. InputError if there
/// is none: `where` says who asked.
Template template_for(const ImportOptions& options, int compute_capability,
                      const std::string& where);

/// InputError with check_cluster()'s findings, if there are any.
void require_sound(const Cluster& cluster, const std::string& where);

/// A cluster of `options.nodes` nodes like `node`, with the template's device, fabric and, where
/// the file has no speed for them, ports. Sources of what was taken are kept and say from whom.
Cluster cluster_with_node(const Template& from, NodeModel node, const ImportOptions& options,
                          const std::string& source);

/// NVLink's datasheet rate of one link and direction: 25 GB/s up to Hopper, 50 on Blackwell (NVIDIA
/// datasheets: 300 GB/s over 6 links both ways on V100, 600 over 12, 900 over 18, 1800 over 18).
BytesPerSecond nvlink_rate(int compute_capability);

}  // namespace meshwright
