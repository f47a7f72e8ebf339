/// Messages and collectives under way on shared links: how far each has come and when it will end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/ids.hpp"
#include "core/link_network.hpp"
#include "core/units.hpp"
#include "simulator/max_min_sharing.hpp"

namespace meshwright {

/// A message or a collective that starts now.
struct FlowRequest {
  TaskId task;                      ///< its send; the first member of a collective
  std::vector<LinkId> route;        ///< not empty
  BytesPerSecond limit;             ///< its rate when alone
  Ticks occupancy;                  ///< its duration when alone, above zero
  std::vector<double> shares = {};  ///< beside `route`: of its rate, on that link; empty: all of it
};

struct FlowEnd {
  TaskId task;
  Ticks end;
  friend bool operator==(const FlowEnd&, const FlowEnd&) = default;
};

/// Progress is counted in Ticks at full speed, so that a message that always had its full rate ends
/// at start + occupancy to the tick. Rates change only when a message starts or ends, and only for
/// messages that are joined to it by a chain of shared links.
class FlowsOnLinks {
 public:
  explicit FlowsOnLinks(const std::vector<Link>& links);

  /// Returns the slot by which the message is finished.
  std::size_t start(const FlowRequest& request, Ticks now);
  void finish(std::size_t slot);
  /// After all starts and ends of the moment `now`: shares the links anew and returns the messages
  /// that will end at another time than thought before, new ones included; valid until the next
  /// call. O(joined messages and links) for each distinct rate among them.
  const std::vector<FlowEnd>& rebalance(Ticks now);

 private:
  struct Flow {
    TaskId task;
    std::vector<LinkId> route;
    std::vector<double> shares;
    BytesPerSecond limit;
    double left = 0;   ///< Ticks at full speed
    double speed = 0;  ///< share of the full speed since `since`; 0: not yet shared
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
  // Buffers of rebalance(), kept for their memory.
  std::vector<LinkId> joined_links_;
  std::vector<std::size_t> joined_flows_;
  std::vector<std::int32_t> link_number_;  ///< by link: place in joined_links_, or -1
  std::vector<bool> flow_joined_;          ///< by slot
  SharingProblem problem_;
  std::vector<FlowEnd> changed_;
};

}  // namespace meshwright
