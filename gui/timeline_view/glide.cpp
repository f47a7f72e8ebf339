/// Animation frames of a TimelineView with slices moving to new positions.
#include <QPainter>
#include <QTimerEvent>
#include <algorithm>
#include <map>

#include "gui/timeline_view/parts.hpp"
#include "gui/timeline_view/timeline_view.hpp"

namespace meshwright::gui {
namespace {

constexpr int kFrameMs = 16;
constexpr double kGlideMs = 150;

}  // namespace

void TimelineView::glide_from(const TimelineTracks& before, const TimeWindow& window) {
  Parts& p = *parts_;
  p.gliding.clear();
  if (p.reduced_motion || p.tracks == nullptr || p.measured != nullptr || !isVisible()) return;
  p.gliding = gliding_slices(before, window, *p.tracks, p.window);
  if (p.gliding.empty()) return;
  p.glide_clock.start();
  p.glide.start(kFrameMs, this);
  update();
}

bool TimelineView::is_gliding() const { return parts_->glide.isActive(); }

void TimelineView::timerEvent(QTimerEvent* event) {
  Parts& p = *parts_;
  if (event->timerId() != p.glide.timerId()) return QWidget::timerEvent(event);
  if (static_cast<double>(p.glide_clock.elapsed()) >= kGlideMs) {
    p.glide.stop();
    p.gliding.clear();
  }
  update(geometry_of_parts().body);
}

/// Paints rows without labels and hatching, which are not readable in an animation of 150 ms.
void TimelineView::paint_glide(QPainter& painter, const TimelineGeometry& geometry) const {
  const Parts& p = *parts_;
  const TimelineColours& c = p.style.colours;
  painter.save();
  painter.setClipRect(geometry.body, Qt::IntersectClip);
  painter.fillRect(geometry.body, QColor::fromRgba(c.background));
  std::map<std::int32_t, QRectF> row_of_rank;
  for (const Lane& lane : p.arrangement->lanes) {
    if (lane.kind != LaneKind::kSlices || !lane.leads_rank) continue;
    const QRectF row(geometry.body.left(),
                     geometry.body.top() + lane.top - (lane.is_pinned ? 0 : p.scroll()),
                     geometry.body.width(), lane.height);
    row_of_rank.emplace(lane.rank, row);
    painter.fillRect(row, QColor::fromRgba(c.idle));
  }
  const double share = eased(static_cast<double>(p.glide_clock.elapsed()) / kGlideMs);
  const auto between = [share](double a, double b) { return a + share * (b - a); };
  for (const GlidingSlice& slice : p.gliding) {
    const auto after = row_of_rank.find(slice.rank_after);
    if (after == row_of_rank.end()) continue;
    const auto before = row_of_rank.find(slice.rank_before);
    const QRectF& from = before == row_of_rank.end() ? after->second : before->second;
    const double left = between(slice.left_before, slice.left_after);
    const double right = between(slice.right_before, slice.right_after);
    painter.fillRect(QRectF(geometry.body.left() + left, between(from.top(), after->second.top()),
                            std::max(0.5, right - left), after->second.height()),
                     QColor::fromRgba(c.slice[static_cast<std::size_t>(slice.kind)]));
  }
  painter.restore();
}

}  // namespace meshwright::gui
