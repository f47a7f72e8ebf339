#include "gui/widgets/stage_bars.hpp"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QStyleOption>
#include <algorithm>
#include <cmath>

#include "gui/text/number_text.hpp"
#include "gui/widgets/theme.hpp"

namespace meshwright::gui {
namespace {

constexpr double kBarMargin = 2, kBarHeadRoom = 1.25, kLabelHeight = 14;
constexpr double kLeastFactor = 0.1, kMostFactor = 10;
constexpr double kKeyStep = 0.05;

/// Snaps to 1 near 1, otherwise rounds to hundredths.
double snapped(double factor) {
  constexpr double kSnap = 0.02;
  if (std::abs(factor - 1) < kSnap) return 1;
  return std::clamp(std::round(factor * 100) / 100, kLeastFactor, kMostFactor);
}

}  // namespace

StageBars::StageBars(QWidget* parent) : Chart(parent) {
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setAccessibleName(tr("Time per pipeline rank"));
  setToolTip(tr("Drag a bar to slow down a pipeline rank; double-click to reset it"));
}

QSize StageBars::sizeHint() const { return {240, 96}; }

void StageBars::show_times(std::vector<Ticks> times, std::vector<double> slowness) {
  times_ = std::move(times);
  slowness_ = std::move(slowness);
  if (dragged_ < 0 && !times_.empty())
    full_scale_ = *std::max_element(times_.begin(), times_.end());
  chosen_ = std::clamp(chosen_, 0, std::max(0, static_cast<int>(times_.size()) - 1));
  update();
}

double StageBars::slowness_of(int pipeline_rank) const {
  const auto i = static_cast<std::size_t>(pipeline_rank);
  return i < slowness_.size() ? slowness_[i] : 1.0;
}

QRectF StageBars::bar_of(int pipeline_rank) const {
  const double width = (this->width() - 2 * kBarMargin) / static_cast<double>(times_.size());
  const double room = height() - kLabelHeight - kBarMargin;
  const double share =
      full_scale_ > Ticks()
          ? std::min(1.0, ratio(times_[static_cast<std::size_t>(pipeline_rank)], full_scale_) /
                              kBarHeadRoom)
          : 0;
  const double gap = std::min(2.0, width / 6);
  return {kBarMargin + pipeline_rank * width + gap, kBarMargin + room * (1 - share),
          width - 2 * gap, room * share};
}

QPoint StageBars::handle_of(int pipeline_rank) const {
  const QRectF bar = bar_of(pipeline_rank);
  return {static_cast<int>(bar.center().x()), static_cast<int>(bar.top()) + 1};
}

int StageBars::pipeline_rank_at(const QPointF& point) const {
  if (times_.empty()) return -1;
  const double width = (this->width() - 2 * kBarMargin) / static_cast<double>(times_.size());
  const int pipeline_rank = static_cast<int>((point.x() - kBarMargin) / width);
  return pipeline_rank >= 0 && pipeline_rank < static_cast<int>(times_.size()) ? pipeline_rank : -1;
}

void StageBars::paint(QPainter& painter, const ChartColors& colors, const QRect&) const {
  const auto count = static_cast<int>(times_.size());
  QFont small = font();
  small.setPointSizeF(small.pointSizeF() * 0.8);
  painter.setFont(small);
  const int every = std::max(1, static_cast<int>(std::ceil(count * 18.0 / std::max(1, width()))));
  for (int i = 0; i < count; ++i) {
    const QRectF bar = bar_of(i);
    const bool is_changed = slowness_of(i) != 1;
    painter.fillRect(bar, is_changed ? colors.series[1] : colors.series[0]);
    if (is_changed) {  // hatched as well: color must not be the only cue
      painter.fillRect(bar, QBrush(colors.background, Qt::BDiagPattern));
      painter.setPen(colors.text);
      painter.drawText(QRectF(bar.left() - 12, bar.top() - 15, bar.width() + 24, 14),
                       Qt::AlignCenter, QString("×%1").arg(slowness_of(i), 0, 'g', 3));
    }
    painter.setPen(colors.faint_text);
    if (i % every == 0)
      painter.drawText(
          QRectF(bar.left() - 10, height() - kLabelHeight, bar.width() + 20, kLabelHeight),
          Qt::AlignCenter, QString::number(i));
    if (hasFocus() && i == chosen_) {
      painter.setPen(QPen(colors.accent, 2));
      painter.setBrush(Qt::NoBrush);
      painter.drawRect(bar.adjusted(-1, -1, 1, 1));
    }
  }
}

void StageBars::change(int pipeline_rank, double factor) {
  factor = snapped(factor);
  if (factor != slowness_of(pipeline_rank)) Q_EMIT slowness_changed(pipeline_rank, factor);
}

void StageBars::mousePressEvent(QMouseEvent* event) {
  const int pipeline_rank = pipeline_rank_at(event->position());
  if (event->button() != Qt::LeftButton || pipeline_rank < 0) return;
  chosen_ = dragged_ = pipeline_rank;
  dragged_from_ = Ticks(static_cast<std::int64_t>(
      static_cast<double>(times_[static_cast<std::size_t>(pipeline_rank)].value) /
      slowness_of(pipeline_rank)));
  update();
}

void StageBars::mouseMoveEvent(QMouseEvent* event) {
  const int pipeline_rank = pipeline_rank_at(event->position());
  setCursor(pipeline_rank >= 0 ? Qt::SizeVerCursor : Qt::ArrowCursor);
  if (dragged_ < 0 || dragged_ >= static_cast<int>(times_.size()) || dragged_from_ <= Ticks())
    return;
  const double room = height() - kLabelHeight - kBarMargin;
  const double share = (kBarMargin + room - event->position().y()) / room;
  change(dragged_, std::max(0.0, share) * kBarHeadRoom * ratio(full_scale_, dragged_from_));
}

void StageBars::mouseReleaseEvent(QMouseEvent*) {
  if (dragged_ < 0) return;
  dragged_ = -1;
  show_times(times_, slowness_);
  Q_EMIT settled();
}

void StageBars::mouseDoubleClickEvent(QMouseEvent* event) {
  const int pipeline_rank = pipeline_rank_at(event->position());
  if (pipeline_rank < 0) return;
  change(pipeline_rank, 1);
  Q_EMIT settled();
}

void StageBars::keyPressEvent(QKeyEvent* event) {
  const int last = static_cast<int>(times_.size()) - 1;
  if (last < 0) return QWidget::keyPressEvent(event);
  switch (event->key()) {
    case Qt::Key_Left:
      chosen_ = std::max(0, chosen_ - 1);
      break;
    case Qt::Key_Right:
      chosen_ = std::min(last, chosen_ + 1);
      break;
    case Qt::Key_Up:
      change(chosen_, slowness_of(chosen_) + kKeyStep);
      break;
    case Qt::Key_Down:
      change(chosen_, slowness_of(chosen_) - kKeyStep);
      break;
    case Qt::Key_Delete:
    case Qt::Key_Backspace:
      change(chosen_, 1);
      break;
    default:
      return QWidget::keyPressEvent(event);
  }
  Q_EMIT settled();
  update();
}

QString StageBars::tip_at(const QPointF& point) const {
  const int pipeline_rank = pipeline_rank_at(point);
  if (pipeline_rank < 0) return toolTip();
  return tr("Pipeline rank %1: %2 per micro-batch, slowdown ×%3.\nDrag to change, double-click to "
            "reset.")
      .arg(pipeline_rank)
      .arg(time_text(times_[static_cast<std::size_t>(pipeline_rank)]))
      .arg(slowness_of(pipeline_rank));
}

}  // namespace meshwright::gui
