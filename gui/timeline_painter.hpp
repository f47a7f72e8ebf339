/// Scene → image. Pure apart from fonts; runs on any thread. Lanes are independent and painted in
/// parallel when a pool is given.
#pragma once

#include <QImage>
#include <QThreadPool>
#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "gui/timeline_causes.hpp"
#include "gui/timeline_colours.hpp"
#include "gui/timeline_comparison.hpp"
#include "gui/timeline_counters.hpp"
#include "gui/timeline_label_font.hpp"
#include "gui/timeline_layout.hpp"

class QPainter;

namespace meshwright::gui {

struct SceneStyle {
  TimelineColours colours;
  bool critical_path = false;
  bool bubble_causes = true;
  bool microbatch_colours = false;
  double scale = 1.0;  ///< device pixels per pixel
  friend bool operator==(const SceneStyle&, const SceneStyle&) = default;
};

/// What a painter needs; shared data is never changed while it is painted.
struct TimelineScene {
  std::shared_ptr<const TimelineTracks> tracks, measured, ghost;
  std::shared_ptr<const TimelineCauses> causes;
  std::shared_ptr<const TimelineComparison> comparison;
  std::shared_ptr<InFlightCurves> in_flight;  ///< of `tracks`; null: no counters are shown
  std::shared_ptr<const LaneArrangement> arrangement;
  std::shared_ptr<const LabelFont> font;
  TimeWindow window;  ///< width in pixels, not device pixels
  int height = 0, scroll = 0;
  SceneStyle style;

  const TimelineTracks& tracks_of(const Lane& lane) const {
    return lane.is_measured ? *measured : *tracks;
  }
  /// Times of the lane's tracks that are `in_pixels` wide.
  TimeWindow window_of(const Lane& lane, int in_pixels) const;
  /// Same picture: the image can be kept.
  friend bool operator==(const TimelineScene&, const TimelineScene&) = default;
};

/// Device pixels; rows, counters and differences, without ruler, names and overlay. Stops early,
/// with a picture of no use, when `cancelled` becomes true.
QImage paint_scene(const TimelineScene& scene, QThreadPool* pool = nullptr,
                   const std::atomic<bool>* cancelled = nullptr);

/// The same as vector graphics, for PDF and SVG: boxes and runs of equal pixels, at (0, 0).
void paint_scene_as_vectors(const TimelineScene& scene, QPainter& painter);

/// Strip of the whole run: mean over compute rows, `height` pixels high.
QImage paint_overview(const TimelineTracks& tracks, const TimelineColours& colours, int width,
                      int height, const std::atomic<bool>* cancelled = nullptr);

}  // namespace meshwright::gui
