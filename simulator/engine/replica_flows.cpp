#include "simulator/engine/replica_flows.hpp"

#include "simulator/network/collective_load.hpp"

namespace meshwright {
namespace {

/// Bytes of collectives that stand for their types.
constexpr std::int64_t kTypeBytes = std::int64_t{1} << 40;

/// Collectives with the same key differ in size only.
struct CollectiveKey {
  TrafficPattern pattern;
  CollectiveKind kind;  ///< of all rings, one
  int servers;
  bool colocated;
  std::int64_t stride, count, alternates_over;
  std::vector<std::int32_t> ranks;  ///< of the members in the folded graph
  auto operator<=>(const CollectiveKey&) const = default;
};

class FlowCollector {
 public:
  FlowCollector(const ReplicatedGraph& all, const LinkNetwork* network)
      : all_(all), graph_(all.folded.graph), network_(network), order_(all.folded, all.replicas) {}

  ReplicaFlows run() {
    if (network_ != nullptr) add_messages();
    for (std::size_t c = 0; c < graph_.collectives.size(); ++c)
      add_collective(static_cast<std::int32_t>(c));
    return std::move(made_);
  }

 private:
  DeviceId device_of(std::int32_t rank, std::int64_t replica) const {
    return all_.ranks[static_cast<std::size_t>(rank * all_.replicas + replica)].device;
  }
  void add_flow(std::int32_t type, std::int64_t owner, std::size_t first_hop) {
    made_.flows.push_back({.type = type,
                           .owner = static_cast<std::int32_t>(owner),
                           .first_hop = static_cast<std::int32_t>(first_hop),
                           .hop_count = static_cast<std::int32_t>(made_.hops.size() - first_hop)});
  }

  void add_messages() {
    for (const Task& task : graph_.tasks) {
      if (task.kind != TaskKind::kReceive) continue;
      const std::int32_t from = graph_.tasks[static_cast<std::size_t>(task.partner)].rank;
      const auto type = static_cast<std::int32_t>(made_.messages.size());
      if (!made_.messages.try_emplace({from, task.rank}, type).second) continue;
      for (std::int64_t r = 0; r < all_.replicas; ++r) {
        const std::size_t first = made_.hops.size();
        for (const LinkId link : network_->route(device_of(from, r), device_of(task.rank, r)))
          made_.hops.push_back({.link = link});
        add_flow(type, r, first);
      }
    }
  }

  void add_collective(std::int32_t c) {
    const CollectiveMembers& members = graph_.collectives[static_cast<std::size_t>(c)];
    const Task& first = graph_.tasks[static_cast<std::size_t>(members.first)];
    Collective collective = graph_.works[first.work.index()].collective;
    const CollectiveSpread& spread = order_.spread_of(c);
    CollectiveKey key{.pattern = traits_of(collective.kind).pattern,
                      .kind = collective.kind,
                      .servers = collective.servers,
                      .colocated = collective.colocated,
                      .stride = spread.stride,
                      .count = spread.count,
                      .alternates_over = spread.alternates_over,
                      .ranks = {}};
    const auto tasks = std::span(graph_.tasks)
                           .subspan(static_cast<std::size_t>(members.first),
                                    static_cast<std::size_t>(members.count));
    for (const Task& task : tasks) key.ranks.push_back(task.rank);
    double scale = static_cast<double>(collective.bytes.value) / kTypeBytes * collective.rounds;
    if (key.pattern == TrafficPattern::kRing || key.pattern == TrafficPattern::kPipelinedRing) {
      const auto n = static_cast<double>(members.count * spread.count);
      key.pattern = TrafficPattern::kRing;
      key.kind = CollectiveKind::kAllReduce;
      if (n > 1) scale *= ring_steps(collective.kind, n) / ring_steps(key.kind, n);
    }
    const auto next = static_cast<std::int32_t>(made_.messages.size() + made_.collectives.size());
    const auto [known, is_new] = types_.try_emplace(key, next);
    made_.use_of.push_back({.type = known->second, .scale = scale});
    if (!is_new) return;
    made_.collectives.push_back(c);
    collective.kind = key.kind;
    collective.bytes = Bytes(kTypeBytes);
    collective.rounds = 1;
    for (std::int64_t group = 0; group < order_.groups_of(c); ++group)
      add_group(c, group, key, collective);
  }
  void add_group(std::int32_t c, std::int64_t group, const CollectiveKey& key,
                 const Collective& collective) {
    const std::size_t first = made_.hops.size();
    if (network_ != nullptr) {
      std::vector<DeviceId> devices;
      for (const std::int32_t rank : key.ranks)
        for (std::int64_t i = 0; i < key.count; ++i)
          devices.push_back(device_of(rank, order_.replica_at(c, group, i)));
      for (const LinkBytes& use : bytes_on_links(collective, devices, *network_))
        made_.hops.push_back({.link = use.link, .bytes = use.bytes});
    }
    add_flow(made_.use_of.back().type, group, first);
  }

  const ReplicatedGraph& all_;
  const TaskGraph& graph_;
  const LinkNetwork* network_;
  CopyOrder order_;
  std::map<CollectiveKey, std::int32_t> types_;
  ReplicaFlows made_;
};

}  // namespace

ReplicaFlows flows_of(const ReplicatedGraph& all, const LinkNetwork* network) {
  return FlowCollector(all, network).run();
}

}  // namespace meshwright
