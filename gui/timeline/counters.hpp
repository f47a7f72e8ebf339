/// Counter tracks below the rows: in-flight micro-batches, and memory by class per pixel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "gui/timeline/layout.hpp"
#include "gui/timeline/tracks.hpp"

namespace meshwright::gui {

/// Number of micro-batches between the start of their forward pass and the end of their last
/// backward part on the row: value[i] is valid from time_ns[i] on. Each model chunk counts
/// separately. O(slices).
struct InFlightCurve {
  std::vector<std::int64_t> time_ns;
  std::vector<std::int32_t> value;
  std::int32_t peak = 0;
};
InFlightCurve in_flight_curve(const TimelineTracks& tracks, std::size_t row);

/// The curves of a timeline's rows, computed on first use. Thread-safe.
class InFlightCurves {
 public:
  explicit InFlightCurves(std::shared_ptr<const TimelineTracks> tracks);
  const InFlightCurve& of_row(std::size_t row);

 private:
  std::shared_ptr<const TimelineTracks> tracks_;
  std::unique_ptr<std::once_flag[]> once_;
  std::vector<InFlightCurve> curves_;
};

/// Largest value within every pixel of the window, so that no peak is lost.
std::vector<std::int32_t> peaks_of_pixels(const InFlightCurve& curve, const TimeWindow& window);

/// The sample with the largest total within every pixel, or else the latest earlier one; null
/// before the first sample.
std::vector<const MemoryPoint*> memory_of_pixels(const MemoryCurveOfRank& curve,
                                                 const TimeWindow& window);
Bytes peak_of(const MemoryCurveOfRank& curve);

}  // namespace meshwright::gui
