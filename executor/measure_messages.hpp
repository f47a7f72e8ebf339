/// Times messages and collectives between ranks that are threads of this process.
#pragma once

#include <vector>

#include "core/calibration.hpp"
#include "core/units.hpp"

namespace meshwright {

struct MessageFigures {
  Seconds latency;           ///< half a round trip of 8 bytes: the best of several batches' means
  BytesPerSecond bandwidth;  ///< by the CPU time of sender and receiver, large messages, median
};
MessageFigures measure_messages();

/// All collectives that calibrations know, among `ranks` threads, by the wall clock: the lower
/// quartile of 8 calls for each size, levelled to rise with size. More ranks than cores would
/// measure the scheduler.
std::vector<CollectiveCurve> measure_collectives(int ranks);

}  // namespace meshwright
