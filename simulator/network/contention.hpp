/// Progress and end times of messages and collectives in flight on shared links.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/ids.hpp"
#include "core/base/units.hpp"
#include "core/cluster/link_network.hpp"
#include "simulator/network/max_min_sharing.hpp"

namespace meshwright {

/// A message or a collective that starts now.
struct FlowRequest {
  TaskId task;                      ///< the send, or the first member of the collective
  std::vector<LinkId> route;        ///< not empty
  BytesPerSecond limit;             ///< rate when alone
  Ticks occupancy;                  ///< duration when alone, above zero
  std::vector<double> shares = {};  ///< by link of `route`: fraction of the rate; empty: 1
};

struct FlowEnd {
  TaskId task;
  Ticks end;
  friend bool operator==(const FlowEnd&, const FlowEnd&) = default;
};

/// Progress is counted in Ticks at full speed, so that a message that always had its full rate ends
/// at exactly start + occupancy. Rates change only when a message starts or ends, and only for
/// messages connected to it through a chain of shared links.
class FlowsOnLinks {
 public:
  explicit FlowsOnLinks(const std::vector<Link>& links);

  /// Returns the slot to pass to finish().
  std::size_t start(const FlowRequest& request, Ticks now);
  void finish(std::size_t slot);
  /// Call after all starts and ends at time `now`: recomputes the rates and returns the messages
  /// whose end time changed, including new ones; valid until the next call. O(connected messages
  /// and links) per distinct rate.
  const std::vector<FlowEnd>& rebalance(Ticks now);

 private:
  struct Flow {
    TaskId task;
    std::vector<LinkId> route;
    std::vector<double> shares;
    BytesPerSecond limit;
    double left = 0;   ///< Ticks at full speed
    double speed = 0;  ///< fraction of full speed since `since`; 0: not computed yet
    Ticks since;
  };
  void collect_joined();
  void pose_problem();
  void set_speed(Flow& flow, double speed, Ticks now);

  std::vector<BytesPerSecond> capacities_;         ///< by link
  std::vector<std::vector<std::size_t>> on_link_;  ///< by link: slots of the flows on it
  std::vector<Flow> flows_;                        ///< by slot; unused slots have an empty route
  std::vector<std::size_t> free_slots_;
  std::vector<LinkId> touched_;  ///< links where something started or ended
  // Buffers of rebalance(), reused to avoid allocations.
  std::vector<LinkId> joined_links_;
  std::vector<std::size_t> joined_flows_;
  std::vector<std::int32_t> link_number_;  ///< by link: index in joined_links_, or -1
  std::vector<bool> flow_joined_;          ///< by slot
  SharingProblem problem_;
  std::vector<FlowEnd> changed_;
};

}  // namespace meshwright
