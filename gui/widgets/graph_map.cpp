#include "gui/widgets/graph_map.hpp"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QPainterPath>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

namespace meshwright::gui {
namespace {

constexpr double kLeastZoom = 0.2, kMostZoom = 3;

QColor stage_color(const ChartColors& colors, std::int32_t stage) {
  return colors.series[static_cast<std::size_t>(stage) % colors.series.size()];
}

QColor text_color_on(const QColor& fill) { return QColor::fromRgb(text_on(fill.rgb())); }

}  // namespace

GraphMap::GraphMap(QWidget* parent) : Chart(parent) {
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(tr("Operators, colored by stage"));
}

void GraphMap::show_drawing(std::shared_ptr<const GraphDrawing> drawing) {
  drawing_ = std::move(drawing);
  chosen_ = -1;
  zoom_to(zoom_);
}

void GraphMap::zoom_to(double zoom) {
  zoom_ = std::clamp(zoom, kLeastZoom, kMostZoom);
  setMinimumSize(sizeHint());
  updateGeometry();
  update();
}

QSize GraphMap::sizeHint() const {
  if (!drawing_) return {320, 240};
  return (drawing_->size * zoom_).toSize().expandedTo({1, 1});
}

QRect GraphMap::place_of(int box) const {
  const QRectF place = drawing_->boxes[static_cast<std::size_t>(box)].place;
  return QRectF(place.topLeft() * zoom_, place.size() * zoom_).toRect();
}

void GraphMap::choose(int box) {
  if (!drawing_ || box < 0 || box >= static_cast<int>(drawing_->boxes.size())) return;
  chosen_ = box;
  update();
  Q_EMIT box_chosen(box);
}

int GraphMap::box_at(const QPointF& point) const {
  if (!drawing_) return -1;
  for (std::size_t b = 0; b < drawing_->boxes.size(); ++b)
    if (drawing_->boxes[b].place.contains(point / zoom_)) return static_cast<int>(b);
  return -1;
}

QString GraphMap::tip_at(const QPointF& point) const {
  const int box = box_at(point);
  if (box < 0) return {};
  const GraphBox& found = drawing_->boxes[static_cast<std::size_t>(box)];
  return tr("%1: stage %2, %n operator(s)", nullptr, static_cast<int>(found.nodes.size()))
      .arg(found.name)
      .arg(found.stage);
}

void GraphMap::paint(QPainter& painter, const ChartColors& colors, const QRect& exposed) const {
  if (!drawing_) return;
  painter.setRenderHint(QPainter::Antialiasing);
  painter.scale(zoom_, zoom_);
  const QRectF seen(QPointF(exposed.topLeft()) / zoom_, QSizeF(exposed.size()) / zoom_);
  painter.setBrush(Qt::NoBrush);
  for (const GraphArrow& arrow : drawing_->arrows) {
    const QRectF& from = drawing_->boxes[arrow.from].place;
    const QRectF& to = drawing_->boxes[arrow.to].place;
    if (!from.united(to).intersects(seen)) continue;
    const QPointF begin(from.center().x(), from.bottom()), end(to.center().x(), to.top());
    const QPointF bend(0, (end.y() - begin.y()) / 2);
    QPainterPath path(begin);
    path.cubicTo(begin + bend, end - bend, end);
    const bool is_chosen = chosen_ >= 0 && (arrow.from == static_cast<std::size_t>(chosen_) ||
                                            arrow.to == static_cast<std::size_t>(chosen_));
    painter.setPen(QPen(is_chosen ? colors.accent : colors.axis, is_chosen ? 2 : 1));
    painter.drawPath(path);
  }
  for (std::size_t b = 0; b < drawing_->boxes.size(); ++b) {
    const GraphBox& box = drawing_->boxes[b];
    if (!box.place.intersects(seen)) continue;
    const QColor fill = stage_color(colors, box.stage);
    const bool is_chosen = chosen_ == static_cast<int>(b);
    painter.setPen(QPen(is_chosen ? colors.accent : colors.background, is_chosen ? 3 : 1));
    painter.setBrush(fill);
    painter.drawRoundedRect(box.place, 4, 4);
    painter.setPen(text_color_on(fill));
    painter.drawText(box.place, Qt::AlignCenter, box.name);
    QFont small = font();
    small.setPointSizeF(small.pointSizeF() * 0.7);
    painter.save();
    painter.setFont(small);
    painter.drawText(box.place.adjusted(3, 0, 0, 0), Qt::AlignLeft | Qt::AlignTop,
                     QString::number(box.stage));
    painter.restore();
  }
}

void GraphMap::mousePressEvent(QMouseEvent* event) { choose(box_at(event->position())); }

void GraphMap::keyPressEvent(QKeyEvent* event) {
  switch (event->key()) {
    case Qt::Key_Right:
    case Qt::Key_Down:
      return choose(chosen_ + 1);
    case Qt::Key_Left:
    case Qt::Key_Up:
      return choose(chosen_ - 1);
    case Qt::Key_Plus:
      return zoom_to(zoom_ * 1.25);
    case Qt::Key_Minus:
      return zoom_to(zoom_ / 1.25);
    default:
      QWidget::keyPressEvent(event);
  }
}

void GraphMap::wheelEvent(QWheelEvent* event) {
  if (!(event->modifiers() & Qt::ControlModifier)) return QWidget::wheelEvent(event);
  constexpr double kStep = 1.0 / 480;  // a notch is 120
  zoom_to(zoom_ * std::exp(event->angleDelta().y() * kStep));
  event->accept();
}

}  // namespace meshwright::gui
