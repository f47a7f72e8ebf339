/// Progress and end times of messages and collectives in flight on shared links.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/ids.hpp"
#include "core/base/units.hpp"
#include "simulator/network/max_min_sharing.hpp"

namespace meshwright {

/// A message or a collective that starts now. start() copies route and shares.
struct FlowRequest {
  TaskId task;                       ///< the send, or the first member of the collective
  std::span<const LinkId> route;     ///< not empty
  BytesPerSecond limit;              ///< rate when alone
  Ticks occupancy;                   ///< duration when alone, above zero
  std::span<const double> shares{};  ///< by link of `route`: fraction of the rate; empty: 1
};

struct FlowEnd {
  TaskId task;
  Ticks end;
  std::size_t slot = 0;  ///< as returned by start()
  friend bool operator==(const FlowEnd&, const FlowEnd&) = default;
};

/// Progress is counted in Ticks at full speed, so that a message that always had its full rate ends
/// at exactly start + occupancy. A link is tight if the flows on it want more than it has. Rates
/// change only when a message starts or ends, and only for messages connected to it through a chain
/// of tight links; other links have no effect on any rate.
class FlowsOnLinks {
 public:
  explicit FlowsOnLinks(std::span<const BytesPerSecond> capacities);  ///< by link

  /// Returns the slot to pass to finish().
  std::size_t start(const FlowRequest& request, Ticks now);
  void finish(std::size_t slot);
  TaskId task_of(std::size_t slot) const { return flows_[slot].task; }
  /// Call after all starts and ends at time `now`: recomputes the rates and returns the messages
  /// whose end time changed, including new ones; valid until the next call. O(messages and links
  /// connected by tight links) per distinct rate.
  const std::vector<FlowEnd>& rebalance(Ticks now);

 private:
  struct Hop {
    LinkId link;
    std::uint32_t place;  ///< index in LinkUse::uses
    double share;
  };
  struct Flow {
    TaskId task;
    std::vector<Hop> hops;
    BytesPerSecond limit;
    double left = 0;   ///< Ticks at full speed
    double speed = 0;  ///< fraction of full speed since `since`; 0: not computed yet
    Ticks since;
    Ticks earliest_end;   ///< at full speed all the time
    bool joined = false;  ///< during rebalance(): in joined_flows_
  };
  struct Use {
    std::uint32_t slot, hop;  ///< flow, and index in its hops
  };
  struct LinkUse {
    BytesPerSecond capacity;
    BytesPerSecond demand;  ///< sum of what the flows on it want
    std::vector<Use> uses;
    std::int32_t number = -1;  ///< during rebalance(): index in the problem
    bool tight = false, touched = false;
  };
  static bool is_tight(const LinkUse& link);
  void touch(LinkId link);
  void collect_joined(std::size_t slot);
  void settle(std::span<const std::size_t> slots, Ticks now);
  void pose_problem(std::span<const std::size_t> slots);
  void set_speed(std::size_t slot, double speed, Ticks now);

  std::vector<LinkUse> links_;
  std::vector<Flow> flows_;  ///< by slot; unused slots have no hops
  std::vector<std::size_t> free_slots_;
  std::vector<LinkId> touched_;         ///< links that were tight or are, and whose flows changed
  std::vector<std::size_t> unsettled_;  ///< slots whose speed may have changed
  std::vector<FlowEnd> settled_;        ///< flows that started at full speed
  // Buffers of rebalance(), reused to avoid allocations.
  std::vector<LinkId> joined_links_;
  std::vector<std::size_t> joined_flows_;
  SharingProblem problem_;
  MaxMinSharing sharing_;
  std::vector<FlowEnd> changed_;
};

}  // namespace meshwright
