// `nvidia-smi topo -m`: a matrix of what lies between every two devices (man nvidia-smi, "topo").
//   X self · NV# that many NVLinks · PIX one PCIe switch · PXB several · PHB a host bridge · NODE
//   several host bridges of one socket · SYS another socket
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "models/import_lines.hpp"

namespace meshwright {
namespace {

constexpr std::size_t kMostDevices = 576;  ///< eight NVL72 racks

struct Matrix {
  std::vector<std::string> header;  ///< "GPU0", …, "NIC0", …, others
  std::size_t gpus = 0, nics = 0;
  std::vector<std::vector<std::string>> between;  ///< [gpu][gpu]
  std::vector<int> lines;                         ///< by gpu
};

bool is_named(std::string_view name, std::string_view prefix) {
  return name.starts_with(prefix) && whole_number(name.substr(prefix.size()));
}
bool is_nic(std::string_view name) {
  return is_named(name, "NIC") || name.starts_with("mlx") || name.starts_with("rdma") ||
         name.starts_with("efa");
}

/// NV# → #; nothing for the others.
std::optional<int> links_in(const std::string& cell) {
  constexpr int kMostLinks = 128;
  if (!cell.starts_with("NV")) return std::nullopt;
  const auto count = whole_number(std::string_view(cell).substr(2));
  if (!count || *count < 1 || *count > kMostLinks) return std::nullopt;
  return static_cast<int>(*count);
}

void check_cell(const NamedText& source, int line, const std::string& cell) {
  static const std::vector<std::string> kKnown{"PIX", "PXB", "PHB", "NODE", "SYS", "SOC"};
  if (links_in(cell) || std::find(kKnown.begin(), kKnown.end(), cell) != kKnown.end()) return;
  refuse(source, line, fmt::format("'{}' between two devices", printable_text(cell)),
         "NV1, NV2, …, PIX, PXB, PHB, NODE or SYS stand there");
}

Matrix read_header(const NamedText& source, const TextLine& line) {
  Matrix matrix;
  matrix.header = columns_of(line.text);
  if (!matrix.header.empty() && matrix.header.front().empty())
    matrix.header.erase(matrix.header.begin());
  for (const std::string& name : matrix.header) {
    if (is_named(name, "GPU")) ++matrix.gpus;
    if (is_nic(name)) ++matrix.nics;
  }
  for (std::size_t g = 0; g < matrix.gpus; ++g)
    if (matrix.header[g] != fmt::format("GPU{}", g))
      refuse(
          source, line.number,
          fmt::format("column {} is '{}', not 'GPU{}'", g + 1, printable_text(matrix.header[g]), g),
          "the matrix begins with its GPUs in order");
  if (matrix.gpus == 0 || matrix.gpus > kMostDevices)
    refuse(source, line.number, fmt::format("{} GPUs", matrix.gpus),
           fmt::format("from 1 to {}", kMostDevices));
  return matrix;
}

Matrix read_matrix(const NamedText& source) {
  Matrix matrix;
  for (const TextLine& line : lines_of(source)) {
    const std::vector<std::string> columns = columns_of(line.text);
    const bool is_header =
        matrix.gpus == 0 && std::find(columns.begin(), columns.end(), "GPU0") != columns.end();
    if (is_header) {
      matrix = read_header(source, line);
      continue;
    }
    if (matrix.gpus == 0 || columns.empty() || !is_named(columns.front(), "GPU")) continue;
    const std::size_t gpu = matrix.between.size();
    if (columns.front() != fmt::format("GPU{}", gpu) || columns.size() < matrix.gpus + 1)
      refuse(source, line.number,
             fmt::format("expected the row of GPU{} with {} cells, got '{}' with {}", gpu,
                         matrix.gpus, printable_text(columns.front()), columns.size() - 1),
             "pass the whole output of nvidia-smi topo -m");
    std::vector<std::string> cells(columns.begin() + 1,
                                   columns.begin() + 1 + static_cast<std::ptrdiff_t>(matrix.gpus));
    for (std::size_t other = 0; other < cells.size(); ++other)
      if (other != gpu) check_cell(source, line.number, cells[other]);
    matrix.between.push_back(std::move(cells));
    matrix.lines.push_back(line.number);
  }
  if (matrix.gpus == 0)
    refuse(source, 1, "there is no row that names GPU0", "pass the output of nvidia-smi topo -m");
  if (matrix.between.size() != matrix.gpus)
    refuse(source, 1,
           fmt::format("{} GPUs in the header, but {} rows", matrix.gpus, matrix.between.size()),
           "pass the whole output of nvidia-smi topo -m");
  return matrix;
}

void check_symmetric(const NamedText& source, const Matrix& matrix) {
  for (std::size_t a = 0; a < matrix.gpus; ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (matrix.between[a][b] != matrix.between[b][a])
        refuse(source, matrix.lines[a],
               fmt::format("GPU{} sees GPU{} by {}, but GPU{} sees GPU{} by {}", a, b,
                           matrix.between[a][b], b, a, matrix.between[b][a]),
               "both ways are the same wires");
}

/// Links of each device: all go to the switch if the pairs' add up to more than a device has.
struct NvLinks {
  int per_device = 0;  ///< least over devices; 0: some pair, or all, are joined by PCIe only
  bool by_switch = false, uneven = false;
};

NvLinks nvlinks_of(const Matrix& matrix) {
  constexpr int kMostLinksOfADevice = 18;
  NvLinks found;
  std::vector<int> sums(matrix.gpus, 0);
  int least_pair = kMostLinksOfADevice, most_pair = 0;
  for (std::size_t a = 0; a < matrix.gpus; ++a)
    for (std::size_t b = 0; b < matrix.gpus; ++b) {
      if (a == b) continue;
      const int links = links_in(matrix.between[a][b]).value_or(0);
      sums[a] += links;
      least_pair = std::min(least_pair, links);
      most_pair = std::max(most_pair, links);
    }
  const auto [least, most] = std::minmax_element(sums.begin(), sums.end());
  found.uneven = *least != *most;
  found.by_switch = least_pair == most_pair && *most > kMostLinksOfADevice;
  found.per_device = found.by_switch ? least_pair : *least;
  return found;
}

/// Groups of devices with nothing above `far` between them: 0, 0, 1, 1, …
int groups_within(const Matrix& matrix, const std::vector<std::string>& near) {
  std::vector<std::size_t> group(matrix.gpus);
  std::iota(group.begin(), group.end(), std::size_t{0});
  for (std::size_t a = 0; a < matrix.gpus; ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (std::find(near.begin(), near.end(), matrix.between[a][b]) != near.end())
        group[a] = std::min(group[a], group[b]);
  std::sort(group.begin(), group.end());
  return static_cast<int>(std::unique(group.begin(), group.end()) - group.begin());
}

/// The tree that the labels draw, if it is an even one.
std::optional<PcieTree> tree_of(const Matrix& matrix, BytesPerSecond rate) {
  PcieTree tree;
  tree.switches = groups_within(matrix, {"PIX", "PXB"});
  tree.sockets = groups_within(matrix, {"PIX", "PXB", "PHB", "NODE"});
  tree.uplink = rate;
  if (tree.sockets > 1) tree.socket_link = rate;
  const auto gpus = static_cast<int>(matrix.gpus);
  if (tree.switches == gpus && tree.sockets == 1) return std::nullopt;
  if (gpus % tree.switches != 0 || tree.switches % tree.sockets != 0) return std::nullopt;
  return tree;
}

int capability_by_links(const NvLinks& links) {
  if (links.per_device >= 18) return 90;
  return links.per_device >= 12 ? 80 : 70;
}

}  // namespace

ImportedCluster import_nvidia_smi(const NamedText& text, const ImportOptions& options) {
  const Matrix matrix = read_matrix(text);
  check_symmetric(text, matrix);
  const NvLinks links = nvlinks_of(matrix);
  ImportedCluster result;
  if (!options.like && links.per_device == 0)
    throw InputError({text.where, "nothing in the file says what devices these are",
                      "name a cluster with the same devices: --like CLUSTER"});
  const Template like = template_for(options, capability_by_links(links), text.where);
  if (!options.like)
    result.notes.push_back(
        fmt::format("{} NVLinks a device: taken for the devices of {}; --like "
                    "names others",
                    links.per_device, like.name));
  const NodeModel& like_node = like.cluster.nodes.at(like.cluster.groups.front().node);
  const DeviceModel& device = like.cluster.devices.at(like_node.device);
  NodeModel node;
  node.name = text.name;
  node.device_count = static_cast<int>(matrix.gpus);
  node.cpu = like_node.cpu;
  node.ports = like_node.ports > 0 ? static_cast<int>(matrix.nics) : 0;
  if (matrix.nics > 0 && like_node.ports > 0)
    result.notes.push_back("all network ports are taken for training traffic");
  if (links.per_device > 0) {
    node.local.kind = links.by_switch ? LocalNetworkKind::kNvSwitch : LocalNetworkKind::kNvLinkMesh;
    node.local.bandwidth =
        nvlink_rate(device.compute_capability.value_or(0)) * static_cast<double>(links.per_device);
    node.local.in_network_reduction = links.by_switch && like_node.local.in_network_reduction;
    if (links.uneven)
      result.notes.push_back("devices have unequal numbers of NVLinks: the least is taken for all");
  } else {
    node.local.kind = LocalNetworkKind::kPcie;
    constexpr BytesPerSecond kGeneration4(31.5e9);  // 16 GT/s * 16 lanes * 128/130 / 8
    const bool is_pcie = like_node.local.kind == LocalNetworkKind::kPcie;
    node.local.bandwidth = is_pcie ? like_node.local.bandwidth : kGeneration4;
    node.local.tree = tree_of(matrix, node.local.bandwidth);
    result.notes.push_back(
        "the matrix has no PCIe rates: taken for generation 4 with 16 lanes, or "
        "as the cluster given with --like");
  }
  result.cluster = cluster_with_node(like, std::move(node), options,
                                     fmt::format("nvidia-smi topo -m, {}", text.where));
  result.cluster.name = text.name;
  require_sound(result.cluster, text.where);
  return result;
}

}  // namespace meshwright
