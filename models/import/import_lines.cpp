#include "models/import/import_lines.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/base/number_from_text.hpp"
#include "models/load/load.hpp"

namespace meshwright {
namespace {

/// Removes terminal escape sequences ("ESC [ … letter").
std::string without_colors(std::string_view text) {
  constexpr char kEscape = '\x1b';
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != kEscape) {
      out += text[i];
      continue;
    }
    if (i + 1 >= text.size() || text[i + 1] != '[') continue;
    i += 2;
    while (i < text.size() && !(text[i] >= '@' && text[i] <= '~')) ++i;
  }
  return out;
}

bool is_space(char c) { return c == ' ' || c == '\t'; }

}  // namespace

std::vector<TextLine> lines_of(const NamedText& source) {
  std::vector<TextLine> lines;
  std::string_view rest = source.text;
  for (int number = 1; !rest.empty(); ++number) {
    const std::size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    if (line.size() > kLongestImportLine)
      refuse(source, number,
             fmt::format("line of {} characters: expected at most {}", line.size(),
                         kLongestImportLine),
             "");
    if (lines.size() >= kMostImportLines)
      refuse(source, number, fmt::format("more than {} lines", kMostImportLines), "");
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    lines.push_back({number, without_colors(line)});
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  return lines;
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < line.size();) {
    while (i < line.size() && is_space(line[i])) ++i;
    const std::size_t begin = i;
    while (i < line.size() && !is_space(line[i])) ++i;
    if (i > begin) words.emplace_back(line.substr(begin, i - begin));
  }
  return words;
}

std::vector<std::string> columns_of(std::string_view line) {
  std::vector<std::string> columns;
  if (line.find('\t') == std::string_view::npos) return words_of(line);
  while (true) {
    const std::size_t tab = line.find('\t');
    columns.push_back(trimmed(line.substr(0, tab)));
    if (tab == std::string_view::npos) return columns;
    line = line.substr(tab + 1);
  }
}

std::string trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return std::string(text);
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  return number_from_text<std::int64_t>(text);
}

std::optional<double> decimal_number(std::string_view text) {
  const auto value = number_from_text<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::string place_of(const NamedText& source, int line) {
  return fmt::format("{}:{}", source.where, line);
}

void refuse(const NamedText& source, int line, std::string what, std::string hint) {
  throw InputError({place_of(source, line), std::move(what), std::move(hint)});
}

Template template_for(const ImportOptions& options, int compute_capability,
                      const std::string& where) {
  if (options.like) return {cluster_from_toml(*options.like), options.like->name};
  // One preset for each generation.
  for (const char* name : {"dgx-v100", "dgx-a100", "dgx-h100", "dgx-b200"}) {
    Cluster cluster = cluster_from_toml(find_cluster(name));
    if (cluster.devices.begin()->second.compute_capability == compute_capability)
      return {std::move(cluster), name};
  }
  throw InputError(
      {where, fmt::format("no preset has devices of compute capability {}", compute_capability),
       "give a cluster with the same devices: --like CLUSTER"});
}

namespace {

/// Copies the sources of the template's entries below `path`, with the name of the template.
void keep_sources(const Template& from, const std::string& path, Cluster& cluster) {
  for (const auto& [key, source] : from.cluster.sources)
    if (key.starts_with(path + "."))
      cluster.sources[key] = fmt::format("from {}: {}", from.name, source);
}

}  // namespace

Cluster cluster_with_node(const Template& from, NodeModel node, const ImportOptions& options,
                          const ImportedFile& file) {
  const NodeModel& like = from.cluster.nodes.at(from.cluster.groups.front().node);
  node.device = like.device;
  node.local.latency = like.local.latency;
  Cluster cluster;
  cluster.devices[like.device] = from.cluster.devices.at(like.device);
  cluster.fabric = from.cluster.fabric;
  cluster.name = node.name;
  cluster.groups = {{.node = "node", .count = options.nodes}};
  keep_sources(from, "devices." + like.device, cluster);
  keep_sources(from, "fabric", cluster);
  for (const char* key : {"device_count", "ports", "port_bandwidth", "local.bandwidth"})
    cluster.sources[fmt::format("nodes.node.{}", key)] =
        fmt::format("{}, {}", file.format, file.where);
  cluster.sources["groups[0].count"] = "option --nodes of import";
  if (node.ports > 0 && node.port_bandwidth.value <= 0) {
    node.port_bandwidth = like.port_bandwidth;
    cluster.sources["nodes.node.port_bandwidth"] = fmt::format("from {}", from.name);
  }
  if (node.ports == 0) cluster.sources.erase("nodes.node.port_bandwidth");
  if (node.device_count > 1) {
    cluster.sources["nodes.node.local.latency"] = fmt::format("from {}", from.name);
  } else {  // a node with one device has no local network
    node.local = {};
    cluster.sources.erase("nodes.node.local.bandwidth");
  }
  cluster.nodes["node"] = std::move(node);
  require_sound(cluster, file.where);
  return cluster;
}

void require_sound(const Cluster& cluster, const std::string& where) {
  throw_if_any(check_cluster(cluster, fmt::format("{}: ", where)));
}

BytesPerSecond nvlink_rate(int compute_capability) {
  constexpr int kBlackwell = 100;
  return BytesPerSecond(compute_capability >= kBlackwell ? 50e9 : 25e9);
}

}  // namespace meshwright
