#include "simulator/engine/replica_classes.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

using Color = std::uint64_t;

/// The finalizer of splitmix64 (Steele, Lea and Flood, OOPSLA 2014).
Color mixed(Color x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
Color mixed(Color a, Color b) { return mixed(mixed(a + 0x9e3779b97f4a7c15u) + b); }
Color color_of(double value) { return std::bit_cast<Color>(value); }
/// Bytes that differ by rounding errors only have the same color.
Color color_of_bytes(double bytes) {
  return std::bit_cast<std::uint32_t>(static_cast<float>(bytes));
}

class ColorRefinement {
 public:
  ColorRefinement(const ReplicatedGraph& all, const ReplicaFlows& flows,
                  std::span<const double> slowness, const LinkNetwork* network)
      : order_(all.folded, all.replicas),
        flows_(flows),
        replicas_(static_cast<std::size_t>(all.replicas)) {
    for (std::size_t r = 0; r < all.shares.share_of.size(); ++r)
      replicas_[r] = mixed(static_cast<Color>(all.shares.share_of[r]));
    for (std::size_t r = 0; r < slowness.size(); ++r) {
      Color& color = replicas_[r % replicas_.size()];
      color = mixed(color, color_of(slowness[r]));
    }
    if (network == nullptr) return;
    for (const Link& link : network->links()) links_.push_back(color_of(link.capacity.value));
  }

  void run() {
    for (std::size_t before = 0, now = count_colors(); now != before;) {
      before = now;
      color_links();
      color_replicas();
      now = count_colors();
    }
  }
  const std::vector<Color>& replicas() const { return replicas_; }
  const std::vector<Color>& links() const { return links_; }

 private:
  std::size_t count_colors() const {
    return std::unordered_set<Color>(replicas_.begin(), replicas_.end()).size() +
           std::unordered_set<Color>(links_.begin(), links_.end()).size();
  }
  /// Calls visit(replica) for the replicas of a flow.
  template <class Visit>
  void each_replica(const ReplicaFlows::Flow& flow, Visit visit) const {
    if (flows_.is_message(flow)) return visit(static_cast<std::size_t>(flow.owner));
    const std::int32_t c = flows_.collective_of(flow);
    for (std::int64_t i = 0; i < order_.spread_of(c).count; ++i)
      visit(static_cast<std::size_t>(order_.replica_at(c, flow.owner, i)));
  }
  Color color_of_flow(const ReplicaFlows::Flow& flow) const {
    Color sum = 0;
    each_replica(flow, [&](std::size_t r) { sum += mixed(replicas_[r]); });
    return mixed(static_cast<Color>(flow.type), sum);
  }

  void color_links() {
    sums_.assign(links_.size(), 0);
    for (const ReplicaFlows::Flow& flow : flows_.flows) {
      if (flow.hop_count == 0) continue;
      const Color color = color_of_flow(flow);
      for (const ReplicaFlows::Hop& hop : flows_.hops_of(flow))
        sums_[hop.link.index()] += mixed(color, color_of_bytes(hop.bytes));
    }
    for (std::size_t l = 0; l < links_.size(); ++l) links_[l] = mixed(links_[l], sums_[l]);
  }
  void color_replicas() {
    sums_.assign(replicas_.size(), 0);
    for (const ReplicaFlows::Flow& flow : flows_.flows) {
      Color color = color_of_flow(flow);
      for (const ReplicaFlows::Hop& hop : flows_.hops_of(flow))
        color += mixed(links_[hop.link.index()], color_of_bytes(hop.bytes));
      color = mixed(color);
      each_replica(flow, [&](std::size_t r) { sums_[r] += color; });
    }
    for (std::size_t r = 0; r < replicas_.size(); ++r) replicas_[r] = mixed(replicas_[r], sums_[r]);
  }

  CopyOrder order_;
  const ReplicaFlows& flows_;
  std::vector<Color> replicas_, links_, sums_;
};

}  // namespace

ReplicasOnLinks::ReplicasOnLinks(const ReplicatedGraph& all, std::span<const double> slowness,
                                 const LinkNetwork* network)
    : flows_(flows_of(all, network)) {
  MW_CHECK(slowness.empty() || slowness.size() == all.ranks.size());
  ColorRefinement refinement(all, flows_, slowness, network);
  refinement.run();
  number_classes(refinement.replicas());
  if (network == nullptr) return;
  number_links(refinement.links(), *network);
  sum_flows(all);
}

void ReplicasOnLinks::number_classes(std::span<const Color> colors) {
  std::unordered_map<Color, std::int32_t> known;
  for (std::size_t r = 0; r < colors.size(); ++r) {
    const auto [found, is_new] =
        known.try_emplace(colors[r], static_cast<std::int32_t>(known.size()));
    if (is_new) {
      classes_.representatives.push_back(static_cast<std::int64_t>(r));
      classes_.sizes.push_back(0);
    }
    classes_.class_of.push_back(found->second);
    ++classes_.sizes[static_cast<std::size_t>(found->second)];
  }
}

void ReplicasOnLinks::number_links(std::span<const Color> colors, const LinkNetwork& network) {
  std::vector<bool> used(colors.size());
  for (const ReplicaFlows::Hop& hop : flows_.hops) used[hop.link.index()] = true;
  link_class_.assign(colors.size(), -1);
  std::unordered_map<Color, std::int32_t> known;
  for (std::size_t l = 0; l < colors.size(); ++l) {
    if (!used[l]) continue;
    const auto [found, is_new] =
        known.try_emplace(colors[l], static_cast<std::int32_t>(known.size()));
    link_class_[l] = found->second;
    if (!is_new) continue;
    first_link_.emplace_back(l);
    capacities_.push_back(network.links()[l].capacity);
  }
}

/// Adds up what all flows of a class put on the first link of every class.
void ReplicasOnLinks::sum_flows(const ReplicatedGraph& all) {
  const CopyOrder order(all.folded, all.replicas);
  shares_.resize((flows_.messages.size() + flows_.collectives.size()) * classes_.sizes.size());
  for (const ReplicaFlows::Flow& flow : flows_.flows) {
    std::int32_t first_class = std::numeric_limits<std::int32_t>::max();
    const auto meet = [&](std::int64_t replica) {
      first_class = std::min(first_class, classes_.class_of[static_cast<std::size_t>(replica)]);
    };
    if (flows_.is_message(flow)) {
      meet(flow.owner);
    } else {
      const std::int32_t c = flows_.collective_of(flow);
      for (std::int64_t i = 0; i < order.spread_of(c).count; ++i)
        meet(order.replica_at(c, flow.owner, i));
    }
    std::vector<LinkShare>& shares = shares_[place_of(flow.type, first_class)];
    for (const ReplicaFlows::Hop& hop : flows_.hops_of(flow)) {
      const std::int32_t link = link_class_[hop.link.index()];
      if (first_link_[static_cast<std::size_t>(link)] != hop.link) continue;
      const auto same = std::find_if(shares.begin(), shares.end(), [&](const LinkShare& s) {
        return s.link.value == link && color_of_bytes(s.bytes) == color_of_bytes(hop.bytes);
      });
      if (same == shares.end())
        shares.push_back({LinkId(link), hop.bytes, 1});
      else
        ++same->count;
    }
  }
  for (std::vector<LinkShare>& shares : shares_)
    std::sort(shares.begin(), shares.end(),
              [](const LinkShare& a, const LinkShare& b) { return a.link < b.link; });
}

/// As collective_load(), with as many flows on a link as the class of the collective puts there.
CollectiveLoad ReplicasOnLinks::load_of(std::int32_t collective, std::int32_t first_class,
                                        Ticks duration) const {
  const ReplicaFlows::CollectiveUse& use = flows_.use_of[static_cast<std::size_t>(collective)];
  const double seconds = to_seconds(duration).value;
  CollectiveLoad load;
  if (use.scale <= 0) return load;
  double fullest = 0;
  std::vector<double> rates;
  for (const LinkShare& share : shares_[place_of(use.type, first_class)]) {
    const double capacity = capacities_[share.link.index()].value;
    const double rate = std::min(share.bytes * use.scale / seconds, capacity);
    if (rate / capacity > fullest) {
      fullest = rate / capacity;
      load.rate = BytesPerSecond(rate);
    }
    load.route.push_back(share.link);
    rates.push_back(rate * share.count);
  }
  for (const double rate : rates) load.shares.push_back(rate / load.rate.value);
  return load;
}

SharedLinks ReplicasOnLinks::links_of(const ClassGraph& graph) const {
  const auto classes = static_cast<std::int32_t>(classes_.sizes.size());
  SharedLinks shared{.capacities = capacities_, .message = {}, .collective = {}};
  shared.message = [this, classes](std::int32_t from, std::int32_t to) {
    LinkPath path;
    const std::int32_t type = flows_.messages.at({from / classes, to / classes});
    for (const LinkShare& share : shares_[place_of(type, from % classes)]) {
      path.links.push_back(share.link);
      path.shares.push_back(share.count);
    }
    return path;
  };
  shared.collective = [this, &graph](std::int32_t c, Ticks duration) {
    const auto made = static_cast<std::size_t>(c);
    return load_of(graph.folded_collective[made], graph.first_class[made], duration);
  };
  return shared;
}

}  // namespace meshwright
