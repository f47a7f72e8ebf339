/// Where everything is in the widget at one moment, and what is at a position. Pure functions.
#pragma once

#include <QPoint>
#include <QRect>
#include <QRectF>
#include <QSize>
#include <optional>
#include <vector>

#include "gui/timeline/content.hpp"
#include "gui/timeline/layout.hpp"
#include "gui/timeline/statistics.hpp"

namespace meshwright::gui {

/// Layout of the widget in pixels.
struct TimelineGeometry {
  static constexpr int kGutter = 132, kOverview = 30, kRuler = 24;
  QRect overview, ruler, gutter, body;
  friend bool operator==(const TimelineGeometry&, const TimelineGeometry&) = default;
};
/// `scroll_bar`: its width, 0 if hidden.
TimelineGeometry timeline_geometry(QSize size, int scroll_bar);

/// Refers to data of the view: valid until the view changes.
struct TimelineFrame {
  const TimelineContent& content;
  const LaneArrangement* arrangement = nullptr;  ///< null without tracks
  TimeWindow window;
  int scroll = 0;
  TimelineGeometry geometry;

  /// The window in the clock of the lane's tracks.
  TimeWindow window_of(const Lane& lane) const;
  /// The first pixel row of a lane.
  int top_of(const Lane& lane) const {
    return geometry.body.top() + lane.top - (lane.is_pinned ? 0 : scroll);
  }
};

/// The items at a position.
struct TimelineTarget {
  std::optional<std::size_t> lane;
  std::optional<std::size_t> slice;  ///< of the lane's tracks
  std::optional<Bubble> bubble;
  friend bool operator==(const TimelineTarget&, const TimelineTarget&) = default;
};
TimelineTarget target_at(const TimelineFrame& frame, QPoint position);

/// The pipeline rank whose handle, at the right edge of the gutter, is at the position.
std::optional<std::int32_t> pipeline_rank_handle_at(const TimelineFrame& frame, QPoint position);

/// The rows and the time range between two corners.
TimelineArea area_between(const TimelineFrame& frame, QPoint a, QPoint b);

/// Rows of the first tracks that have a lane, ascending.
std::vector<std::size_t> rows_with_lane(const TimelineFrame& frame);

/// A time range of a row; empty if the row has no lane. Times are in the clock of the row's tracks.
QRectF box_of(const TimelineFrame& frame, bool is_measured, std::size_t row, Nanoseconds from,
              Nanoseconds to);
QRectF box_of(const TimelineFrame& frame, const Bubble& bubble);
QRectF box_of_slice(const TimelineFrame& frame, bool is_measured, std::size_t slice);

}  // namespace meshwright::gui
