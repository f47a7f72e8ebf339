// `nvidia-smi topo -m`: a matrix of the connections between devices (man nvidia-smi, "topo").
//   X self · NV# number of NVLinks · PIX one PCIe switch · PXB several · PHB a host bridge · NODE
//   several host bridges of one socket · SYS another socket
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "models/import/import_lines.hpp"

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

/// NV# → #; nullopt for other connections.
std::optional<int> links_in(const std::string& cell) {
  constexpr int kMostLinksPerPair = 128;
  if (!cell.starts_with("NV")) return std::nullopt;
  const auto count = whole_number(std::string_view(cell).substr(2));
  if (!count || *count < 1 || *count > kMostLinksPerPair) return std::nullopt;
  return static_cast<int>(*count);
}

void check_cell(const NamedText& source, int line, const std::string& cell) {
  static const std::vector<std::string> kKnown{"PIX", "PXB", "PHB", "NODE", "SYS", "SOC"};
  if (links_in(cell) || std::find(kKnown.begin(), kKnown.end(), cell) != kKnown.end()) return;
  refuse(source, line, fmt::format("invalid connection '{}'", printable_text(cell)),
         "expected one of: NV1, NV2, …, PIX, PXB, PHB, NODE, SYS");
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
      refuse(source, line.number,
             fmt::format("expected column {} to be 'GPU{}', got '{}'", g + 1, g,
                         printable_text(matrix.header[g])),
             "pass the output of nvidia-smi topo -m unchanged");
  if (matrix.gpus == 0 || matrix.gpus > kMostDevices)
    refuse(source, line.number,
           fmt::format("expected 1 to {} GPUs, got {}", kMostDevices, matrix.gpus), "");
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
             fmt::format("expected row 'GPU{}' with {} cells, got '{}' with {}", gpu, matrix.gpus,
                         printable_text(columns.front()), columns.size() - 1),
             "pass the complete output of nvidia-smi topo -m");
    std::vector<std::string> cells(columns.begin() + 1,
                                   columns.begin() + 1 + static_cast<std::ptrdiff_t>(matrix.gpus));
    for (std::size_t other = 0; other < cells.size(); ++other)
      if (other != gpu) check_cell(source, line.number, cells[other]);
    matrix.between.push_back(std::move(cells));
    matrix.lines.push_back(line.number);
  }
  if (matrix.gpus == 0)
    refuse(source, 1, "no header with GPU0 found", "pass the output of nvidia-smi topo -m");
  if (matrix.between.size() != matrix.gpus)
    refuse(source, 1,
           fmt::format("header has {} GPUs, but the matrix has {} rows", matrix.gpus,
                       matrix.between.size()),
           "pass the complete output of nvidia-smi topo -m");
  return matrix;
}

void check_symmetric(const NamedText& source, const Matrix& matrix) {
  for (std::size_t a = 0; a < matrix.gpus; ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (matrix.between[a][b] != matrix.between[b][a])
        refuse(source, matrix.lines[a],
               fmt::format("GPU{} to GPU{} is {}, but GPU{} to GPU{} is {}", a, b,
                           matrix.between[a][b], b, a, matrix.between[b][a]),
               "pass the output of nvidia-smi topo -m unchanged: the matrix must be symmetric");
}

/// NVLinks of each device. With an NVSwitch every pair shows all links of a device, so that the
/// sum over pairs exceeds the links that a device has.
struct NvLinks {
  int per_device = 0;  ///< minimum over devices; 0: a device has no NVLink
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

/// Number of groups of devices that are connected by one of the labels in `near`.
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

/// The PCIe tree given by the labels, if every switch and socket has the same number of devices.
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
    throw InputError({text.where, "cannot determine the device type from the file",
                      "give a cluster with the same devices: --like CLUSTER"});
  const Template like = template_for(options, capability_by_links(links), text.where);
  if (!options.like)
    result.notes.push_back(
        fmt::format("{} NVLinks per device: assumed the devices of {}; give --like for others",
                    links.per_device, like.name));
  const NodeModel& like_node = like.cluster.nodes.at(like.cluster.groups.front().node);
  const DeviceModel& device = like.cluster.devices.at(like_node.device);
  NodeModel node;
  node.name = text.name;
  node.device_count = static_cast<int>(matrix.gpus);
  node.cpu = like_node.cpu;
  node.ports = like_node.ports > 0 ? static_cast<int>(matrix.nics) : 0;
  if (matrix.nics > 0 && like_node.ports > 0)
    result.notes.emplace_back("assumed that all network ports carry training traffic");
  if (links.per_device > 0) {
    node.local.kind = links.by_switch ? LocalNetworkKind::kNvSwitch : LocalNetworkKind::kNvLinkMesh;
    node.local.bandwidth =
        nvlink_rate(device.compute_capability.value_or(0)) * static_cast<double>(links.per_device);
    node.local.in_network_reduction = links.by_switch && like_node.local.in_network_reduction;
    if (links.uneven)
      result.notes.emplace_back(
          "devices have different numbers of NVLinks: assumed the smallest for all");
  } else {
    node.local.kind = LocalNetworkKind::kPcie;
    constexpr BytesPerSecond kGeneration4(31.5e9);  // 16 GT/s * 16 lanes * 128/130 / 8
    const bool is_pcie = like_node.local.kind == LocalNetworkKind::kPcie;
    node.local.bandwidth = is_pcie ? like_node.local.bandwidth : kGeneration4;
    node.local.tree = tree_of(matrix, node.local.bandwidth);
    result.notes.emplace_back(
        "the matrix has no PCIe bandwidth: assumed that of the --like cluster, or PCIe 4.0 x16");
  }
  result.cluster =
      cluster_with_node(like, std::move(node), options, {"nvidia-smi topo -m", text.where});
  return result;
}

bool is_nvidia_smi(std::string_view head) { return contains(head, "gpu0"); }

}  // namespace meshwright
