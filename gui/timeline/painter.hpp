/// Paints a scene into an image. Pure except for fonts; runs on any thread. Lanes are independent
/// and painted in parallel if a thread pool is given.
#pragma once

#include <QColor>
#include <QImage>
#include <QThreadPool>
#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "gui/timeline/colors.hpp"
#include "gui/timeline/content.hpp"
#include "gui/timeline/label_font.hpp"
#include "gui/timeline/layout.hpp"

class QPainter;

namespace meshwright::gui {

inline QColor color(Argb argb) { return QColor::fromRgba(argb); }

struct SceneStyle {
  TimelineColors colors;
  bool critical_path = false;
  bool bubble_causes = true;
  bool microbatch_colors = false;
  double scale = 1.0;  ///< device pixels per pixel
  friend bool operator==(const SceneStyle&, const SceneStyle&) = default;
};

/// Everything needed to paint a timeline; the shared data is immutable.
struct TimelineScene {
  TimelineContent content;
  std::shared_ptr<const LaneArrangement> arrangement;
  std::shared_ptr<const LabelFonts> fonts;
  TimeWindow window;  ///< width in pixels, not device pixels
  int height = 0, scroll = 0;
  SceneStyle style;

  /// The window in the time base of the lane's tracks, `in_pixels` wide.
  TimeWindow window_of(const Lane& lane, int in_pixels) const;
  /// Equal scenes give equal images, so the image can be reused.
  friend bool operator==(const TimelineScene&, const TimelineScene&) = default;
};

/// Paints rows, counters and differences in device pixels, without ruler, names and overlay. Stops
/// early with an incomplete image when `canceled` becomes true.
QImage paint_scene(const TimelineScene& scene, QThreadPool* pool = nullptr,
                   const std::atomic<bool>* canceled = nullptr);

/// The same as vector graphics at (0, 0), for PDF and SVG: boxes and runs of equal pixels.
void paint_scene_as_vectors(const TimelineScene& scene, QPainter& painter);

// ---- marks that legends repeat ------------------------------------------------------------------

/// True if the hatch pattern of a cause covers the pixel: causes differ in pattern, not in color.
bool is_hatched(IdleCause cause, int x, int y, int step);
/// Height of the stripe at the bottom of passes of all model chunks but the first.
inline constexpr int kChunkStripe = 3;
/// True for passes of model chunks after the first, whose stage is the pipeline rank.
bool is_later_chunk(const TimelineTracks& tracks, std::size_t row, std::size_t slice);
/// Color of a memory class in counter lanes: those that do not change are muted.
Argb lane_color(const TimelineColors& colors, MemoryClass memory_class);

/// Overview strip of the whole timeline: the compute rows scaled down to `height` pixels.
QImage paint_overview(const TimelineTracks& tracks, const TimelineColors& colors, int width,
                      int height, const std::atomic<bool>* canceled = nullptr);

}  // namespace meshwright::gui
