// NCCL's topology dump (NCCL_TOPO_DUMP_FILE; NVIDIA/nccl src/graph/xml.cc): <system> contains
// <cpu>, which contains nested <pci>, which contain <gpu> with <nvlink>, and <nic> with <net>.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "models/import/import_lines.hpp"
#include "models/import/xml_elements.hpp"

namespace meshwright {
namespace {

constexpr int kMostGpus = 4096, kMostLinks = 1024;

struct Gpu {
  int capability = 0, links = 0, line = 1;
  bool by_switch = false;
  BytesPerSecond pcie;  ///< of its slot; 0: unknown
  int cpu = 0, pci_switch = 0;
};
struct Port {
  BytesPerSecond rate;
};
struct System {
  std::vector<Gpu> gpus;
  std::vector<Port> ports;
  std::set<int> cpus;
  CpuVendor vendor = CpuVendor::kOther;
};

class SystemReader {
 public:
  explicit SystemReader(const NamedText& source) : source_(source), elements_(parse_xml(source)) {
    if (elements_.empty() || elements_.front().name != "system")
      refuse(source, 1, "expected <system> as the root element",
             "pass the file written with NCCL_TOPO_DUMP_FILE");
  }

  System read() {
    for (std::size_t i = 0; i < elements_.size(); ++i) {
      const XmlElement& element = elements_[i];
      if (element.name == "cpu") read_cpu(element, static_cast<int>(i));
      if (element.name == "gpu") read_gpu(element, static_cast<int>(i));
      if (element.name == "nvlink") read_nvlink(element);
      if (element.name == "net") read_net(element);
    }
    if (system_.gpus.empty())
      refuse(source_, 1, "no <gpu> element found", "dump the topology on a node with GPUs");
    return std::move(system_);
  }

 private:
  std::string text(const XmlElement& element, const char* key) const {
    const auto found = element.attributes.find(key);
    return found == element.attributes.end() ? "" : found->second;
  }
  int number(const XmlElement& element, const char* key, int least, int most) const {
    const std::string value = text(element, key);
    const auto parsed = whole_number(value);
    if (parsed && *parsed >= least && *parsed <= most) return static_cast<int>(*parsed);
    refuse(source_, element.line,
           fmt::format("invalid value '{}' for '{}' of <{}>: expected a whole number from {} to {}",
                       printable_text(value), key, element.name, least, most),
           "");
  }

  void read_cpu(const XmlElement& element, int index) {
    system_.cpus.insert(index);
    const std::string vendor = text(element, "vendor");
    if (vendor == "GenuineIntel") system_.vendor = CpuVendor::kIntel;
    if (vendor == "AuthenticAMD") system_.vendor = CpuVendor::kAmd;
    if (text(element, "arch") == "arm64") system_.vendor = CpuVendor::kArm;
  }

  /// "32.0 GT/s PCIe" and 16 lanes: 32 * 16 / 8 * 128 / 130 GB/s (128b/130b encoding; 8b/10b up to
  /// 5 GT/s).
  BytesPerSecond pcie_rate(const XmlElement& pci) const {
    const std::vector<std::string> words = words_of(text(pci, "link_speed"));
    const double speed = words.empty() ? 0.0 : decimal_number(words.front()).value_or(0.0);
    const std::int64_t width = whole_number(text(pci, "link_width")).value_or(0);
    constexpr double kFastest = 1024, kFirstWith130 = 8.0;
    constexpr std::int64_t kWidest = 64;
    if (!(speed > 0 && speed <= kFastest) || width < 1 || width > kWidest) return {};
    const double coding = speed >= kFirstWith130 ? 128.0 / 130.0 : 0.8;
    return BytesPerSecond(speed * 1e9 * static_cast<double>(width) / 8 * coding);
  }

  void read_gpu(const XmlElement& element, int index) {
    if (system_.gpus.size() >= static_cast<std::size_t>(kMostGpus))
      refuse(source_, element.line, fmt::format("more than {} GPUs", kMostGpus), "");
    Gpu gpu;
    gpu.line = element.line;
    gpu.capability = number(element, "sm", 1, 1000);
    // The innermost <pci> is the slot; the next outer one, if any, is the switch.
    int slots = 0;
    for (int at = element.parent; at >= 0; at = elements_[static_cast<std::size_t>(at)].parent) {
      const XmlElement& outer = elements_[static_cast<std::size_t>(at)];
      if (outer.name == "pci" && slots++ == 0) gpu.pcie = pcie_rate(outer);
      if (outer.name == "pci") gpu.pci_switch = slots == 1 ? index : at;
      if (outer.name == "cpu") gpu.cpu = at;
    }
    gpu_of_element_[index] = system_.gpus.size();
    system_.gpus.push_back(gpu);
  }

  void read_nvlink(const XmlElement& element) {
    const auto gpu = gpu_of_element_.find(element.parent);
    if (gpu == gpu_of_element_.end()) return;  // links of NVSwitches
    constexpr const char* kSwitchClass = "0x068000";
    Gpu& owner = system_.gpus[gpu->second];
    owner.links = std::min(kMostLinks, owner.links + number(element, "count", 1, kMostLinks));
    // In virtual machines the switch is hidden: its address is all ones.
    owner.by_switch |=
        text(element, "tclass") == kSwitchClass || text(element, "target").starts_with("fffffff");
  }

  void read_net(const XmlElement& element) {
    if (system_.ports.size() >= static_cast<std::size_t>(kMostGpus))
      refuse(source_, element.line, fmt::format("more than {} ports", kMostGpus), "");
    constexpr int kMostMegabits = 100'000'000;
    const int megabits = number(element, "speed", 0, kMostMegabits);
    if (megabits == 0)
      refuse(
          source_, element.line,
          fmt::format("port '{}' has a speed of 0 Mbit/s", printable_text(text(element, "name"))),
          "bring the port up and dump again, or remove its <nic> from the file");
    system_.ports.push_back({BytesPerSecond(megabits * 1e6 / 8)});
  }

  const NamedText& source_;
  std::vector<XmlElement> elements_;
  std::map<int, std::size_t> gpu_of_element_;
  System system_;
};

/// The PCIe tree, if every switch and socket has the same number of devices.
std::optional<PcieTree> tree_of(const System& system, BytesPerSecond rate) {
  std::set<int> switches, sockets;
  for (const Gpu& gpu : system.gpus) {
    switches.insert(gpu.pci_switch);
    sockets.insert(gpu.cpu);
  }
  const std::size_t gpus = system.gpus.size();
  if (switches.size() == gpus && sockets.size() == 1) return std::nullopt;
  if (gpus % switches.size() != 0 || switches.size() % sockets.size() != 0) return std::nullopt;
  PcieTree tree{.switches = static_cast<int>(switches.size()),
                .sockets = static_cast<int>(sockets.size()),
                .uplink = rate,
                .socket_link = {}};
  if (tree.sockets > 1) tree.socket_link = rate;
  return tree;
}

void set_local_network(const System& system, NodeModel& node, std::vector<std::string>& notes) {
  const auto least_links =
      std::min_element(system.gpus.begin(), system.gpus.end(),
                       [](const Gpu& a, const Gpu& b) { return a.links < b.links; });
  for (const Gpu& gpu : system.gpus)
    if (gpu.links != least_links->links) {
      notes.push_back(fmt::format("devices have different numbers of NVLinks: assumed {} for all",
                                  least_links->links));
      break;
    }
  constexpr int kFirstWithReduction = 90;
  if (least_links->links > 0) {
    const int capability = system.gpus.front().capability;
    node.local.kind =
        least_links->by_switch ? LocalNetworkKind::kNvSwitch : LocalNetworkKind::kNvLinkMesh;
    node.local.bandwidth = nvlink_rate(capability) * static_cast<double>(least_links->links);
    node.local.in_network_reduction = least_links->by_switch && capability >= kFirstWithReduction;
    return;
  }
  node.local.kind = LocalNetworkKind::kPcie;
  BytesPerSecond slowest = BytesPerSecond::max();
  for (const Gpu& gpu : system.gpus)
    if (gpu.pcie.value > 0) slowest = std::min(slowest, gpu.pcie);
  constexpr BytesPerSecond kGeneration4(31.5e9);
  if (slowest == BytesPerSecond::max()) {
    notes.emplace_back("the slots have no speed: assumed PCIe 4.0 x16");
    slowest = kGeneration4;
  }
  node.local.bandwidth = slowest;
  node.local.tree = tree_of(system, slowest);
}

}  // namespace

ImportedCluster import_nccl_topology(const NamedText& xml, const ImportOptions& options) {
  const System system = SystemReader(xml).read();
  const int capability = system.gpus.front().capability;
  for (const Gpu& gpu : system.gpus)
    if (gpu.capability != capability)
      refuse(xml, gpu.line,
             fmt::format("devices of different compute capability: {} and {}", capability,
                         gpu.capability),
             "use nodes with one type of device");
  ImportedCluster result;
  const Template like = template_for(options, capability, xml.where);
  if (!options.like)
    result.notes.push_back(
        fmt::format("compute capability {}: assumed the devices of {}; give --like for others",
                    capability, like.name));
  NodeModel node;
  node.name = xml.name;
  node.device_count = static_cast<int>(system.gpus.size());
  node.cpu = system.vendor;
  set_local_network(system, node, result.notes);
  node.ports = static_cast<int>(system.ports.size());
  if (node.ports > 0) {
    node.port_bandwidth = system.ports.front().rate;
    for (const Port& port : system.ports)
      node.port_bandwidth = std::min(node.port_bandwidth, port.rate);
    result.notes.emplace_back(
        "assumed that all network ports carry training traffic at the speed of the slowest");
  }
  result.cluster = cluster_with_node(like, std::move(node), options, {"NCCL topology", xml.where});
  return result;
}

bool is_nccl_topology(std::string_view head) { return contains(head, "<system"); }

}  // namespace meshwright
