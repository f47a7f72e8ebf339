/// Curves beside the rows: micro-batches in flight, memory by class at every pixel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "gui/timeline_layout.hpp"
#include "gui/timeline_tracks.hpp"

namespace meshwright::gui {

/// Micro-batches whose forward pass has begun on the row and whose last backward part has not
/// ended: value[i] holds from time_ns[i] on. Chunks of one device count each for itself. O(slices).
struct InFlightCurve {
  std::vector<std::int64_t> time_ns;
  std::vector<std::int32_t> value;
  std::int32_t peak = 0;
};
InFlightCurve in_flight_curve(const TimelineTracks& tracks, std::size_t row);

/// The curves of one timeline's rows, each worked out when it is first asked for. For any thread.
class InFlightCurves {
 public:
  explicit InFlightCurves(std::shared_ptr<const TimelineTracks> tracks);
  const InFlightCurve& of_row(std::size_t row);

 private:
  std::shared_ptr<const TimelineTracks> tracks_;
  std::unique_ptr<std::once_flag[]> once_;
  std::vector<InFlightCurve> curves_;
};

/// Largest value within every pixel of the window; a peak is never lost between pixels.
std::vector<std::int32_t> peaks_of_pixels(const InFlightCurve& curve, const TimeWindow& window);

/// The sample with the largest total within every pixel, or the one that holds from before; null
/// where none has been taken yet.
std::vector<const MemoryPoint*> memory_of_pixels(const MemoryCurveOfRank& curve,
                                                 const TimeWindow& window);
Bytes peak_of(const MemoryCurveOfRank& curve);

}  // namespace meshwright::gui
