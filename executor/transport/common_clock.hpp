/// Moments that all ranks agree on although the steady clocks of their hosts start at different
/// times.
///
/// Ranks on the host of rank 0 share its clock. Those on other hosts measure how far its clock is
/// ahead of theirs, from the fastest of several round trips: off by at most half of that one.
/// Clocks drift apart by some microseconds per second, so it is measured again every hundred
/// moments.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "executor/transport/communicator.hpp"

namespace meshwright {

class CommonClock {
 public:
  using Moment = std::chrono::steady_clock::time_point;
  struct Source {
    std::string host;  ///< equal on ranks that share a clock
    std::function<Moment()> now;
  };
  /// Identified by its boot.
  static Source this_host();

  /// Called by all ranks; the communicator must outlive it.
  explicit CommonClock(Communicator& communicator, Source source = this_host());
  /// Called by all ranks: a moment chosen by rank 0 once all are ready, on this rank's own clock.
  Moment agree();

 private:
  void measure();
  Communicator& communicator_;
  Source source_;
  std::chrono::nanoseconds ahead_{};  ///< rank 0's clock minus this rank's
  int moments_ = 0;
};

}  // namespace meshwright
