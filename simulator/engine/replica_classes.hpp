/// Replicas that have the same times because nothing tells them apart, and what they share.
///
/// Classes start from the slowness of the ranks and their shares of the batch. They are split by
/// the classes of the replicas that collectives join and of the links in use, and classes of links
/// by capacity and by the classes of the flows on them, until nothing changes (color refinement;
/// Weisfeiler and Leman 1968; Paige and Tarjan, SIAM J. Comput. 16, 1987). Then any two links of a
/// class carry equal numbers of flows of every class, so max-min fair sharing treats the members of
/// a class alike, whenever they start. Classes are told apart by hashes of 64 bits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/cluster/link_network.hpp"
#include "core/lowering/replicated_graph.hpp"
#include "simulator/engine/replica_flows.hpp"
#include "simulator/engine/shared_links.hpp"

namespace meshwright {

class ReplicasOnLinks {
 public:
  /// `slowness`: by rank of the job; empty: all alike. Without a network, no links are shared.
  /// O(links + flows) per round; the rounds are few.
  ReplicasOnLinks(const ReplicatedGraph& all, std::span<const double> slowness,
                  const LinkNetwork* network);

  const ReplicaClasses& classes() const { return classes_; }
  /// Link i stands for a class of links, and carries all flows of a class that one of them
  /// carries. Refers to this object and to `graph`.
  SharedLinks links_of(const ClassGraph& graph) const;

 private:
  /// What a collective of a type puts on a link of a class: `count` times `bytes`.
  struct LinkShare {
    LinkId link;
    double bytes, count;
  };
  void number_classes(std::span<const std::uint64_t> colors);
  void number_links(std::span<const std::uint64_t> colors, const LinkNetwork& network);
  void sum_flows(const ReplicatedGraph& all);
  CollectiveLoad load_of(std::int32_t collective, std::int32_t first_class, Ticks duration) const;
  std::size_t place_of(std::int32_t type, std::int32_t of_class) const {
    return static_cast<std::size_t>(type) * classes_.sizes.size() +
           static_cast<std::size_t>(of_class);
  }

  ReplicaFlows flows_;
  ReplicaClasses classes_;
  std::vector<std::int32_t> link_class_;  ///< by link; -1: without flows
  std::vector<LinkId> first_link_;        ///< by class of links
  std::vector<BytesPerSecond> capacities_;
  std::vector<std::vector<LinkShare>> shares_;  ///< [type, class of replicas]: by class of links
};

}  // namespace meshwright
