#include "gui/timeline_view/glide.hpp"

#include <QPainter>
#include <QTimerEvent>
#include <algorithm>
#include <map>

#include "gui/timeline/painter.hpp"

namespace meshwright::gui {
namespace {

constexpr int kGlideFrameMs = 16;
constexpr double kGlideMs = 150;

}  // namespace

void TimelineGlide::start(std::vector<GlidingSlice> slices) {
  slices_ = std::move(slices);
  if (slices_.empty()) {
    timer_.stop();
    return;
  }
  clock_.start();
  timer_.start(kGlideFrameMs, this);
  Q_EMIT advanced();
}

void TimelineGlide::timerEvent(QTimerEvent* event) {
  if (event->timerId() != timer_.timerId()) return QObject::timerEvent(event);
  if (static_cast<double>(clock_.elapsed()) >= kGlideMs) stop();
  Q_EMIT advanced();
}

void TimelineGlide::paint(QPainter& painter, const TimelineFrame& frame,
                          const TimelineColors& colors) const {
  const QRect& body = frame.geometry.body;
  painter.save();
  painter.setClipRect(body, Qt::IntersectClip);
  painter.fillRect(body, color(colors.background));
  std::map<std::int32_t, QRectF> row_of_rank;
  for (const Lane& lane : frame.arrangement->lanes) {
    if (lane.kind != LaneKind::kSlices || !lane.leads_rank) continue;
    const QRectF row(body.left(), frame.top_of(lane), body.width(), lane.height);
    row_of_rank.emplace(lane.rank, row);
    painter.fillRect(row, color(colors.idle));
  }
  const double share = eased(static_cast<double>(clock_.elapsed()) / kGlideMs);
  const auto between = [share](double a, double b) { return a + share * (b - a); };
  for (const GlidingSlice& slice : slices_) {
    const auto after = row_of_rank.find(slice.rank_after);
    if (after == row_of_rank.end()) continue;
    const auto before = row_of_rank.find(slice.rank_before);
    const QRectF& from = before == row_of_rank.end() ? after->second : before->second;
    const double left = between(slice.left_before, slice.left_after);
    const double right = between(slice.right_before, slice.right_after);
    painter.fillRect(QRectF(body.left() + left, between(from.top(), after->second.top()),
                            std::max(0.5, right - left), after->second.height()),
                     color(colors.slice[static_cast<std::size_t>(slice.kind)]));
  }
  painter.restore();
}

}  // namespace meshwright::gui
