/// Measures messages and collectives between ranks that are threads of this process.
#pragma once

#include <vector>

#include "core/base/units.hpp"
#include "core/cost/calibration.hpp"

namespace meshwright {

struct MessageFigures {
  Seconds latency;           ///< half a round trip of 8 bytes; best batch mean
  BytesPerSecond bandwidth;  ///< large messages, by CPU time of both sides; median
};
MessageFigures measure_messages();

/// Measures all collectives of a calibration among `ranks` threads by the wall clock: the lower
/// quartile of 8 calls per size, made monotonic in size. With more ranks than cores this would
/// measure the scheduler.
std::vector<CollectiveCurve> measure_collectives(int ranks);

}  // namespace meshwright
