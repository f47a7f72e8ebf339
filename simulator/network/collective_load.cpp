#include "simulator/network/collective_load.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

class LinkTally {
 public:
  explicit LinkTally(const LinkNetwork& network) : network_(network) {}

  void send(DeviceId from, DeviceId to, double bytes) {
    if (bytes <= 0) return;
    for (const LinkId link : network_.route(from, to)) uses_.push_back({link, bytes});
  }

  /// Sums by link.
  std::vector<LinkBytes> result() {
    std::stable_sort(uses_.begin(), uses_.end(),
                     [](const LinkBytes& a, const LinkBytes& b) { return a.link < b.link; });
    std::vector<LinkBytes> sums;
    for (const LinkBytes& use : uses_) {
      if (sums.empty() || sums.back().link != use.link)
        sums.push_back(use);
      else
        sums.back().bytes += use.bytes;
    }
    return sums;
  }

 private:
  const LinkNetwork& network_;
  std::vector<LinkBytes> uses_;
};

/// Devices of the members, sorted by node.
struct NodeMembers {
  std::vector<DeviceId> devices;
  std::vector<std::size_t> begin;  ///< by node with members: first index in `devices`; and the end
  std::size_t nodes() const { return begin.size() - 1; }
  std::span<const DeviceId> of(std::size_t node) const {
    return std::span(devices).subspan(begin[node], begin[node + 1] - begin[node]);
  }
};

NodeMembers by_node(std::span<const DeviceId> devices, const LinkNetwork& network) {
  NodeMembers members{.devices = {devices.begin(), devices.end()}, .begin = {}};
  std::sort(members.devices.begin(), members.devices.end());
  for (std::size_t i = 0; i < members.devices.size(); ++i)
    if (i == 0 || network.node_of(members.devices[i]) != network.node_of(members.devices[i - 1]))
      members.begin.push_back(i);
  members.begin.push_back(members.devices.size());
  return members;
}

/// `hop`: bytes over every hop of the ring.
void add_ring(const NodeMembers& members, double hop, LinkTally& tally) {
  for (std::size_t n = 0; n < members.nodes(); ++n) {
    const std::span<const DeviceId> here = members.of(n);
    const auto p = static_cast<double>(here.size());
    const double inside = members.nodes() == 1 ? hop : hop * (p - 1) / p;
    for (std::size_t i = 0; i < here.size() && here.size() > 1; ++i)
      tally.send(here[i], here[(i + 1) % here.size()], inside);
    if (members.nodes() == 1) continue;
    const std::span<const DeviceId> next = members.of((n + 1) % members.nodes());
    for (std::size_t i = 0; i < here.size(); ++i)
      tally.send(here[i], next[i % next.size()], hop / p);
  }
}

/// Workers come first, servers last; servers on workers' devices are workers too.
void add_servers(const Collective& collective, std::span<const DeviceId> devices, bool push,
                 LinkTally& tally) {
  const auto servers =
      std::min(static_cast<std::size_t>(std::max(0, collective.servers)), devices.size());
  const std::size_t workers = collective.colocated ? devices.size() : devices.size() - servers;
  const double part = static_cast<double>(collective.bytes.value) / static_cast<double>(servers);
  for (std::size_t w = 0; w < workers; ++w)
    for (std::size_t s = devices.size() - servers; s < devices.size(); ++s)
      if (push)
        tally.send(devices[w], devices[s], part);
      else
        tally.send(devices[s], devices[w], part);
}

void add_root(std::span<const DeviceId> devices, double part, bool from_root, LinkTally& tally) {
  for (std::size_t i = 1; i < devices.size(); ++i)
    if (from_root)
      tally.send(devices[0], devices[i], part);
    else
      tally.send(devices[i], devices[0], part);
}

}  // namespace

std::vector<LinkBytes> bytes_on_links(const Collective& collective,
                                      std::span<const DeviceId> devices,
                                      const LinkNetwork& network) {
  LinkTally tally(network);
  const auto n = static_cast<double>(devices.size());
  const auto bytes = static_cast<double>(collective.bytes.value);
  const TrafficPattern pattern = traits_of(collective.kind).pattern;
  switch (pattern) {
    case TrafficPattern::kRing:
    case TrafficPattern::kPipelinedRing:
      add_ring(by_node(devices, network), ring_steps(collective.kind, n) / n * bytes, tally);
      break;
    case TrafficPattern::kPairs:
      for (const DeviceId from : devices)
        for (const DeviceId to : devices) tally.send(from, to, bytes / n);
      break;
    case TrafficPattern::kFromFirst:
    case TrafficPattern::kToFirst:
      add_root(devices, bytes / n, pattern == TrafficPattern::kFromFirst, tally);
      break;
    case TrafficPattern::kNeighbors:
      for (std::size_t i = 0; i < devices.size(); ++i)
        tally.send(devices[i], devices[(i + 1) % devices.size()], collective.rounds * bytes);
      break;
    case TrafficPattern::kToServers:
    case TrafficPattern::kFromServers:
      if (collective.servers > 0)
        add_servers(collective, devices, pattern == TrafficPattern::kToServers, tally);
      break;
    case TrafficPattern::kHost:
      break;
  }
  return tally.result();
}

CollectiveLoad collective_load(const Collective& collective, std::span<const DeviceId> devices,
                               const LinkNetwork& network, Ticks duration) {
  MW_CHECK(duration > Ticks());
  CollectiveLoad load;
  const double seconds = to_seconds(duration).value;
  double fullest = 0;
  std::vector<double> rates;
  for (const LinkBytes& use : bytes_on_links(collective, devices, network)) {
    const double capacity = network.links()[use.link.index()].capacity.value;
    const double rate = std::min(use.bytes / seconds, capacity);
    load.route.push_back(use.link);
    rates.push_back(rate);
    if (rate / capacity <= fullest) continue;
    fullest = rate / capacity;
    load.rate = BytesPerSecond(rate);
  }
  for (const double rate : rates) load.shares.push_back(rate / load.rate.value);
  return load;
}

}  // namespace meshwright
