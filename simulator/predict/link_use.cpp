#include "simulator/predict/link_use.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <variant>

#include "core/lowering/lower.hpp"
#include "core/plan/rank_groups.hpp"
#include "simulator/network/collective_load.hpp"
#include "simulator/predict/predict.hpp"

namespace meshwright {
namespace {

class LinkLoads {
 public:
  LinkLoads(const Strategy& strategy, const TaskGraph& graph, const LinkNetwork& network)
      : strategy_(strategy), graph_(graph), network_(network), bytes_(network.links().size(), 0.0) {
    for (const RankInfo& rank : graph.ranks) device_of_rank_[rank.rank.value] = rank.device;
  }

  /// Counts repeated transfers first, so that each one is distributed over links only once.
  std::vector<double> bytes() {
    std::map<std::pair<std::int32_t, std::int32_t>, double> sent;            // between ranks
    std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> computed;  // work, rank
    for (const Task& task : graph_.tasks) {
      if (task.kind == TaskKind::kReceive && task.partner >= 0) {
        const Task& send = graph_.tasks[static_cast<std::size_t>(task.partner)];
        sent[{send.rank, task.rank}] +=
            static_cast<double>(graph_.works[send.work.index()].transfer.bytes.value);
      } else if (task.stream == Stream::kCompute) {
        ++computed[{task.work.value, task.rank}];
      }
    }
    for (const auto& [ranks, bytes] : sent)
      for (const LinkId link : network_.route(device_of(ranks.first), device_of(ranks.second)))
        bytes_[link.index()] += bytes;
    for (const auto& [of, times] : computed) add_inside(of.first, of.second, times);
    add_collectives();
    return std::move(bytes_);
  }

 private:
  /// Collectives that are steps of a compute task; each group is handled at its first rank.
  void add_inside(std::int32_t work, std::int32_t rank, std::int64_t times) {
    const RankId id = graph_.ranks[static_cast<std::size_t>(rank)].rank;
    const AxisGroups groups = axis_groups_of(strategy_, id);
    for (const WorkPartUse& use : graph_.works[static_cast<std::size_t>(work)].parts)
      for (const Step& step : graph_.parts[static_cast<std::size_t>(use.part)].steps) {
        const auto* collective = std::get_if<Collective>(&step);
        if (collective == nullptr) continue;
        const std::vector<RankId>& members = members_of(groups, *collective);
        if (members.size() < 2 || members.front() != id) continue;
        std::vector<DeviceId> devices;
        devices.reserve(members.size());
        for (const RankId member : members) devices.push_back(device_of_rank_.at(member.value));
        add(*collective, devices, static_cast<double>(times * use.count));
      }
  }
  /// Collectives that are tasks of their own: their members are adjacent.
  void add_collectives() {
    std::map<std::pair<std::int32_t, std::int32_t>, std::pair<CollectiveMembers, int>> counted;
    for (const CollectiveMembers& members : graph_.collectives) {
      const Task& first = graph_.tasks[static_cast<std::size_t>(members.first)];
      auto& one = counted.try_emplace({first.work.value, first.rank}, members, 0).first->second;
      ++one.second;
    }
    for (const auto& [key, one] : counted) {
      std::vector<DeviceId> devices;
      devices.reserve(static_cast<std::size_t>(one.first.count));
      const auto member = graph_.tasks.begin() + one.first.first;
      std::transform(member, member + one.first.count, std::back_inserter(devices),
                     [&](const Task& task) { return device_of(task.rank); });
      if (devices.size() > 1)
        add(graph_.works[static_cast<std::size_t>(key.first)].collective, devices, one.second);
    }
  }
  void add(const Collective& collective, const std::vector<DeviceId>& devices, double times) {
    for (const LinkBytes& load : bytes_on_links(collective, devices, network_))
      bytes_[load.link.index()] += times * load.bytes;
  }
  DeviceId device_of(std::int32_t rank) const {
    return graph_.ranks[static_cast<std::size_t>(rank)].device;
  }

  const Strategy& strategy_;
  const TaskGraph& graph_;
  const LinkNetwork& network_;
  std::vector<double> bytes_;
  std::map<std::int32_t, DeviceId> device_of_rank_;
};

/// Utilization of links, looked up by name without direction; nullopt for unknown names.
class SharesByName {
 public:
  explicit SharesByName(const std::vector<LinkUse>& links) {
    for (const LinkUse& link : links) shares_.emplace(link.name, link.share());
  }
  std::optional<double> fuller_direction(const std::string& name) const {
    const auto out = shares_.find(name + ".out"), in = shares_.find(name + ".in");
    if (out == shares_.end() || in == shares_.end()) return std::nullopt;
    return std::max(out->second, in->second);
  }

 private:
  std::map<std::string, double> shares_;
};

void add_shares(const LinkNetwork& network, int devices, LinkUses& uses) {
  const SharesByName shares(uses.links);
  int node = -1, slot = 0;
  for (int d = 0; d < devices; ++d) {
    const int of = network.node_of(DeviceId(d)).value;
    slot = of == node ? slot + 1 : 0;
    if (of != node) {
      double fullest = 0;
      int port = 0;
      for (; const auto share = shares.fuller_direction(fmt::format("node{}.port{}", of, port));
           ++port)
        fullest = std::max(fullest, *share);
      uses.share_of_network.push_back(fullest);
    }
    node = of;
    uses.share_of_device.push_back(
        shares.fuller_direction(fmt::format("node{}.device{}.local", of, slot)).value_or(0));
  }
}

}  // namespace

std::int64_t task_count_of_all_ranks(const TaskGraph& graph, std::int64_t ranks) {
  const auto lowered = static_cast<std::int64_t>(std::max<std::size_t>(1, graph.ranks.size()));
  return static_cast<std::int64_t>(graph.tasks.size()) * ranks / lowered;
}

LinkUses link_uses(const Plan& plan, const ModelGraph& model, const Cluster& cluster,
                   Ticks step_time) {
  const TaskGraph graph = lower(plan, model, cluster, {.ranks = RankSet::kAll, .steps = 1});
  const LinkNetwork network = network_of(graph.ranks, plan.strategy, cluster);
  const std::vector<double> bytes = LinkLoads(plan.strategy, graph, network).bytes();
  const double seconds = to_seconds(step_time).value;
  LinkUses uses;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const Link& link = network.links()[i];
    uses.links.push_back({link.name, link.capacity, BytesPerSecond(bytes[i] / seconds)});
    if (bytes[i] > 0) uses.busiest.push_back(i);
  }
  std::stable_sort(uses.busiest.begin(), uses.busiest.end(), [&](std::size_t a, std::size_t b) {
    return uses.links[a].share() > uses.links[b].share();
  });
  add_shares(network, static_cast<int>(graph.ranks.size()), uses);
  return uses;
}

}  // namespace meshwright
