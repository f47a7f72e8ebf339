#include "gui/widgets/topology_map.hpp"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "gui/text/number_text.hpp"
#include "gui/text/qstring_of.hpp"
#include "gui/timeline/colors.hpp"
#include "gui/widgets/theme.hpp"

namespace meshwright::gui {
namespace {

constexpr double kSmallest = 34, kLargest = 76;  ///< side lengths of a device in pixels
constexpr double kDeviceGap = 4, kNodeMargin = 12, kTitle = 20;
constexpr int kDevicesAcross = 4;

double node_width(int devices, double side) {
  return 2 * kDeviceGap + std::min(devices, kDevicesAcross) * (side + kDeviceGap);
}
double node_height(int devices, double side) {
  return kTitle + 2 * kDeviceGap +
         std::ceil(devices / static_cast<double>(kDevicesAcross)) * (side + kDeviceGap);
}
int columns_of(int width, int widest, double side) {
  return std::max(
      1, static_cast<int>((width - kNodeMargin) / (node_width(widest, side) + kNodeMargin)));
}
double height_of(std::size_t nodes, int width, int widest, double side) {
  const int columns = columns_of(width, widest, side);
  const double rows = std::ceil(static_cast<double>(nodes) / columns);
  return kNodeMargin + rows * (node_height(widest, side) + kNodeMargin);
}

}  // namespace

GroupPlace group_place(const Strategy& strategy, RankId rank, Axis axis) {
  const RankCoordinate c = coordinate_of(strategy.degrees, rank, strategy.model_parallelism.order);
  // The group number combines all other coordinates, the slowest axis first.
  GroupPlace place;
  for (auto group = kDenseGroups.rbegin(); group != kDenseGroups.rend(); ++group) {
    if (group->axis == axis)
      place.member = c.*group->coordinate;
    else
      place.group = place.group * strategy.degrees.*group->size + c.*group->coordinate;
  }
  return place;
}

TopologyMap::TopologyMap(QWidget* parent) : Chart(parent) {
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(tr("Nodes and devices"));
}

void TopologyMap::show_job(const Strategy& strategy, std::vector<int> nodes) {
  strategy_ = strategy;
  nodes_ = std::move(nodes);
  widest_ = nodes_.empty() ? 1 : *std::max_element(nodes_.begin(), nodes_.end());
  first_of_node_.clear();
  node_of_rank_.clear();
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    first_of_node_.push_back(static_cast<int>(node_of_rank_.size()));
    node_of_rank_.insert(node_of_rank_.end(), static_cast<std::size_t>(nodes_[n]),
                         static_cast<int>(n));
  }
  chosen_ = std::clamp(chosen_, 0, std::max(0, static_cast<int>(node_of_rank_.size()) - 1));
  choose_side();
  updateGeometry();
  setMinimumHeight(sizeHint().height());
  update();
}

void TopologyMap::set_axis(Axis axis) {
  axis_ = axis;
  update();
}

/// Chooses the largest device size that fits without scrolling.
void TopologyMap::choose_side() {
  side_ = kSmallest;
  while (side_ + 1 <= kLargest &&
         height_of(nodes_.size(), width(), widest_, side_ + 1) <= height() &&
         node_width(widest_, side_ + 1) + 2 * kNodeMargin <= width())
    ++side_;
}

void TopologyMap::resizeEvent(QResizeEvent* event) {
  choose_side();
  setMinimumHeight(sizeHint().height());
  QWidget::resizeEvent(event);
}

/// The size with the smallest devices; extra space makes them larger.
QSize TopologyMap::sizeHint() const {
  return {640, static_cast<int>(height_of(nodes_.size(), width(), widest_, kSmallest))};
}

QRectF TopologyMap::node_box(int node) const {
  const int columns = columns_of(width(), widest_, side_);
  const int column = node % columns, row = node / columns;
  return {kNodeMargin + column * (node_width(widest_, side_) + kNodeMargin),
          kNodeMargin + row * (node_height(widest_, side_) + kNodeMargin),
          node_width(nodes_[static_cast<std::size_t>(node)], side_),
          node_height(nodes_[static_cast<std::size_t>(node)], side_)};
}

QRectF TopologyMap::device_box(int rank) const {
  const int node = node_of_rank_[static_cast<std::size_t>(rank)];
  const int place = rank - first_of_node_[static_cast<std::size_t>(node)];
  const int column = place % kDevicesAcross, row = place / kDevicesAcross;
  const QRectF box = node_box(node);
  return {box.left() + 1.5 * kDeviceGap + column * (side_ + kDeviceGap),
          box.top() + kTitle + kDeviceGap + row * (side_ + kDeviceGap), side_, side_};
}

void TopologyMap::show_shares(std::vector<double> of_device, std::vector<double> of_network) {
  share_of_device_ = std::move(of_device);
  share_of_network_ = std::move(of_network);
  update();
}

void TopologyMap::paint(QPainter& painter, const ChartColors&, const QRect& exposed) const {
  painter.setRenderHint(QPainter::Antialiasing);
  if (node_of_rank_.empty()) return;
  const GroupPlace chosen = group_place(strategy_, RankId(chosen_), axis_);
  QFont small = font();
  if (side_ < 48) small.setPointSizeF(small.pointSizeF() * 0.85);
  painter.setFont(small);
  for (int node = 0; node < static_cast<int>(nodes_.size()); ++node) {
    if (!node_box(node).intersects(exposed)) continue;
    paint_node(painter, node);
    const int first = first_of_node_[static_cast<std::size_t>(node)];
    for (int rank = first; rank < first + nodes_[static_cast<std::size_t>(node)]; ++rank)
      paint_device(painter, rank, chosen);
  }
}

void TopologyMap::paint_node(QPainter& painter, int node) const {
  const ChartColors colors = chart_colors(palette());
  const QRectF box = node_box(node);
  painter.setPen(colors.axis);
  painter.setBrush(colors.panel);
  painter.drawRoundedRect(box, 5, 5);
  painter.setPen(colors.faint_text);
  const QRectF title(box.left() + 6, box.top() + 1, box.width() - 12, kTitle);
  painter.drawText(title, Qt::AlignVCenter, tr("node %1").arg(node));
  const auto n = static_cast<std::size_t>(node);
  if (n < share_of_network_.size() && share_of_network_[n] > 0)
    painter.drawText(title, Qt::AlignVCenter | Qt::AlignRight,
                     tr("network %1").arg(percent_text(share_of_network_[n])));
}

/// A bar at the bottom shows the utilization of the device's own link.
void TopologyMap::paint_device(QPainter& painter, int rank, const GroupPlace& chosen) const {
  const ChartColors colors = chart_colors(palette());
  const GroupPlace place = group_place(strategy_, RankId(rank), axis_);
  const QColor hue = colors.series[static_cast<std::size_t>(place.group) % colors.series.size()];
  const QRectF device = device_box(rank);
  const bool is_with_chosen = place.group == chosen.group;
  constexpr int kPale = 115;  // of 255
  QColor veil = hue;
  veil.setAlpha(is_with_chosen ? 255 : kPale);
  const QColor color = QColor::fromRgb(blended(colors.panel.rgb(), veil.rgba()));
  painter.setBrush(color);
  painter.setPen(Qt::NoPen);
  painter.drawRoundedRect(device, 4, 4);
  const QColor ink = QColor::fromRgb(text_on(color.rgb()));
  if (const auto r = static_cast<std::size_t>(rank); r < share_of_device_.size()) {
    const QRectF foot(device.left() + 5, device.bottom() - 7, device.width() - 10, 4);
    painter.setPen(QPen(ink, 0.7));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(foot);
    painter.fillRect(
        QRectF(foot.left(), foot.top(), foot.width() * std::clamp(share_of_device_[r], 0.0, 1.0),
               foot.height()),
        ink);
  }
  if (is_with_chosen) {
    painter.setPen(QPen(colors.text, rank == chosen_ ? 3 : 1.5));
    painter.setBrush(Qt::NoBrush);
    painter.drawRoundedRect(device, 4, 4);
  }
  painter.setPen(ink);
  painter.drawText(device.adjusted(0, 0, 0, -6), Qt::AlignCenter,
                   QString("%1\n·%2").arg(rank).arg(place.member));
}

int TopologyMap::rank_at(const QPointF& point) const {
  for (int rank = 0; rank < static_cast<int>(node_of_rank_.size()); ++rank)
    if (device_box(rank).contains(point)) return rank;
  return -1;
}

void TopologyMap::choose(int rank) {
  if (rank < 0 || rank >= static_cast<int>(node_of_rank_.size())) return;
  chosen_ = rank;
  update();
  Q_EMIT rank_chosen(rank);
}

void TopologyMap::mousePressEvent(QMouseEvent* event) { choose(rank_at(event->position())); }

void TopologyMap::keyPressEvent(QKeyEvent* event) {
  switch (event->key()) {
    case Qt::Key_Left:
      return choose(chosen_ - 1);
    case Qt::Key_Right:
      return choose(chosen_ + 1);
    case Qt::Key_Up:
      return choose(chosen_ - kDevicesAcross);
    case Qt::Key_Down:
      return choose(chosen_ + kDevicesAcross);
    default:
      QWidget::keyPressEvent(event);
  }
}

QString TopologyMap::tip_at(const QPointF& point) const {
  const int rank = rank_at(point);
  if (rank < 0) return {};
  const RankCoordinate c =
      coordinate_of(strategy_.degrees, RankId(rank), strategy_.model_parallelism.order);
  QStringList coordinates;
  for (auto group = kDenseGroups.rbegin(); group != kDenseGroups.rend(); ++group)
    coordinates += QString("%1 %2").arg(qstring_of(name_of(group->axis))).arg(c.*group->coordinate);
  QString text = tr("rank %1: %2").arg(rank).arg(coordinates.join(", "));
  if (const auto r = static_cast<std::size_t>(rank); r < share_of_device_.size())
    text +=
        "\n" + tr("link utilization %1, mean over a step").arg(percent_text(share_of_device_[r]));
  return text;
}

}  // namespace meshwright::gui
