#include "gui/widgets/heat_map.hpp"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "gui/timeline/colors.hpp"
#include "gui/widgets/theme.hpp"

namespace meshwright::gui {
namespace {

/// Dark blue via gray to yellow with evenly rising lightness, readable in grayscale and with color
/// vision deficiency (points of the "cividis" map, Nuñez et al., 2018).
constexpr std::array<QRgb, 6> kRamp{0xff00224e, 0xff35456c, 0xff666970,
                                    0xff948e77, 0xffc8b866, 0xfffee838};

QColor ramp_color(double share) {
  const double place = std::clamp(share, 0.0, 1.0) * (kRamp.size() - 1);
  const auto index = std::min(static_cast<std::size_t>(place), kRamp.size() - 2);
  const double part = place - static_cast<double>(index);
  const QColor a(kRamp[index]), b(kRamp[index + 1]);
  return QColor::fromRgbF(static_cast<float>(a.redF() + part * (b.redF() - a.redF())),
                          static_cast<float>(a.greenF() + part * (b.greenF() - a.greenF())),
                          static_cast<float>(a.blueF() + part * (b.blueF() - a.blueF())));
}

QColor readable_on(const QColor& background) { return QColor::fromRgb(text_on(background.rgb())); }

}  // namespace

HeatMap::HeatMap(QWidget* parent) : Chart(parent) {
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(tr("Heat map"));
}

void HeatMap::show_content(HeatMapContent content) {
  content_ = std::move(content);
  std::vector<double> values;
  for (const auto& row : content_.values)
    for (const auto& value : row)
      if (value) values.push_back(*value);
  if (values.empty()) values = {0};
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  low_ = *low;
  high_ = *high > *low ? *high : *low + 1;
  cursor_ = {
      std::clamp(content_.chosen_column, 0,
                 std::max(0, static_cast<int>(content_.columns.size()) - 1)),
      std::clamp(content_.chosen_row, 0, std::max(0, static_cast<int>(content_.rows.size()) - 1))};
  update();
}

QRectF HeatMap::grid_area() const {
  const QFontMetricsF metrics(font());
  double labels = 0;
  for (const QString& row : content_.rows)
    labels = std::max(labels, metrics.horizontalAdvance(row));
  const double line = metrics.height();
  return QRectF(rect()).adjusted(labels + line + 20, 8, -10, -2 * line - 14);
}

QRectF HeatMap::cell_at(int row, int column) const {
  const QRectF area = grid_area();
  const double width =
      area.width() / static_cast<double>(std::max<qsizetype>(1, content_.columns.size()));
  const double height =
      area.height() / static_cast<double>(std::max<qsizetype>(1, content_.rows.size()));
  // The first row is at the bottom: values grow upward.
  return {area.left() + column * width, area.bottom() - (row + 1) * height, width, height};
}

QPoint HeatMap::cell_of(const QPointF& point) const {
  for (int row = 0; row < content_.rows.size(); ++row)
    for (int column = 0; column < content_.columns.size(); ++column)
      if (cell_at(row, column).contains(point)) return {column, row};
  return {-1, -1};
}

QColor HeatMap::color_of(double value) const {
  const double share = (value - low_) / (high_ - low_);
  return ramp_color(content_.more_is_better ? share : 1 - share);
}

void HeatMap::paint(QPainter& painter, const ChartColors&, const QRect&) const {
  painter.setRenderHint(QPainter::Antialiasing);
  if (content_.values.empty()) return;
  paint_cells(painter);
  paint_lines(painter);
  paint_texts(painter);
  paint_levels(painter);
  paint_titles(painter);
}

void HeatMap::paint_cells(QPainter& painter) const {
  const ChartColors colors = chart_colors(palette());
  for (int row = 0; row < content_.rows.size(); ++row)
    for (int column = 0; column < content_.columns.size(); ++column) {
      const auto r = static_cast<std::size_t>(row), c = static_cast<std::size_t>(column);
      const QRectF cell = cell_at(row, column).adjusted(0.5, 0.5, -0.5, -0.5);
      const std::optional<double> value = content_.values[r][c];
      const QColor color = value ? color_of(*value) : colors.panel;
      painter.fillRect(cell, color);
      if (content_.marked[r][c])
        painter.fillRect(cell, QBrush(readable_on(color), Qt::BDiagPattern));
    }
  const auto frame = [&](int row, int column, const QPen& pen) {
    if (row < 0 || column < 0) return;
    painter.setPen(pen);
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(cell_at(row, column).adjusted(1.5, 1.5, -1.5, -1.5));
  };
  frame(content_.chosen_row, content_.chosen_column, QPen(colors.accent, 3));
  if (hasFocus()) frame(cursor_.y(), cursor_.x(), QPen(colors.text, 2, Qt::DashLine));
}

/// Painted over contour lines and hatches, each text
/// on a patch of its cell's color to stay readable.
void HeatMap::paint_texts(QPainter& painter) const {
  const ChartColors colors = chart_colors(palette());
  const QFontMetricsF metrics(painter.font());
  for (int row = 0; row < content_.rows.size(); ++row)
    for (int column = 0; column < content_.columns.size(); ++column) {
      const auto r = static_cast<std::size_t>(row), c = static_cast<std::size_t>(column);
      const std::optional<double> value = content_.values[r][c];
      const QString text = value ? content_.texts[r][c] : QString("–");
      const QRectF cell = cell_at(row, column);
      QRectF patch(0, 0, metrics.horizontalAdvance(text) + 8, metrics.height() + 2);
      if (patch.width() > cell.width()) continue;
      patch.moveCenter(cell.center());
      const QColor color = value ? color_of(*value) : colors.panel;
      painter.setPen(Qt::NoPen);
      painter.setBrush(color);
      painter.drawRoundedRect(patch, 3, 3);
      painter.setPen(value ? readable_on(color) : colors.faint_text);
      painter.drawText(patch, Qt::AlignCenter, text);
    }
}

void HeatMap::paint_lines(QPainter& painter) const {
  const QRectF first = cell_at(0, 0);
  const auto to_screen = [&](const QPointF& p) {
    return QPointF(first.center().x() + p.x() * first.width(),
                   first.center().y() - p.y() * first.height());
  };
  for (const double level : content_.levels) {
    const std::vector<QLineF> line = iso_line(content_.values, level);
    for (const auto& [color, width] :
         {std::pair(QColor(Qt::black), 3.0), std::pair(QColor(Qt::white), 1.4)}) {
      painter.setPen(QPen(color, width));
      for (const QLineF& piece : line)
        painter.drawLine(to_screen(piece.p1()), to_screen(piece.p2()));
    }
  }
}

/// Labels each contour line where it is furthest from the numbers in the cell centers.
void HeatMap::paint_levels(QPainter& painter) const {
  if (!content_.level_text) return;
  const QRectF first = cell_at(0, 0);
  const ChartColors colors = chart_colors(palette());
  const QFontMetricsF metrics(painter.font());
  const auto from_numbers = [](const QLineF& piece) {
    const QPointF at = piece.center();
    return std::hypot(at.x() - std::round(at.x()), at.y() - std::round(at.y()));
  };
  for (const double level : content_.levels) {
    const std::vector<QLineF> line = iso_line(content_.values, level);
    if (line.empty()) continue;
    const QPointF at =
        std::max_element(line.begin(), line.end(), [&](const auto& a, const auto& b) {
          return from_numbers(a) < from_numbers(b);
        })->center();
    const QString text = content_.level_text(level);
    QRectF box(0, 0, metrics.horizontalAdvance(text) + 6, metrics.height());
    box.moveCenter(QPointF(first.center().x() + at.x() * first.width(),
                           first.center().y() - at.y() * first.height()));
    painter.fillRect(box, colors.background);
    painter.setPen(colors.text);
    painter.drawText(box, Qt::AlignCenter, text);
  }
}

void HeatMap::paint_titles(QPainter& painter) const {
  const ChartColors colors = chart_colors(palette());
  const QRectF area = grid_area();
  const double line = QFontMetricsF(painter.font()).height();
  painter.setPen(colors.text);
  for (int row = 0; row < content_.rows.size(); ++row) {
    const QRectF cell = cell_at(row, 0);
    painter.drawText(QRectF(0, cell.top(), area.left() - 6, cell.height()),
                     Qt::AlignRight | Qt::AlignVCenter, content_.rows[row]);
  }
  for (int column = 0; column < content_.columns.size(); ++column) {
    const QRectF cell = cell_at(0, column);
    painter.drawText(QRectF(cell.left(), area.bottom() + 3, cell.width(), line), Qt::AlignCenter,
                     content_.columns[column]);
  }
  painter.setPen(colors.faint_text);
  painter.drawText(QRectF(area.left(), area.bottom() + line + 6, area.width(), line),
                   Qt::AlignCenter, content_.column_title);
  painter.save();
  painter.translate(line, area.center().y());
  painter.rotate(-90);
  painter.drawText(QRectF(-area.height() / 2, -line / 2 - 2, area.height(), line), Qt::AlignCenter,
                   content_.row_title);
  painter.restore();
}

void HeatMap::mousePressEvent(QMouseEvent* event) {
  const QPoint cell = cell_of(event->position());
  if (event->button() != Qt::LeftButton || cell.x() < 0) return;
  cursor_ = cell;
  update();
  Q_EMIT cell_chosen(cell.y(), cell.x());
}

void HeatMap::keyPressEvent(QKeyEvent* event) {
  QPoint next = cursor_;
  switch (event->key()) {
    case Qt::Key_Left:
      next.rx() -= 1;
      break;
    case Qt::Key_Right:
      next.rx() += 1;
      break;
    case Qt::Key_Up:
      next.ry() += 1;
      break;
    case Qt::Key_Down:
      next.ry() -= 1;
      break;
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (!content_.values.empty()) Q_EMIT cell_chosen(cursor_.y(), cursor_.x());
      return;
    default:
      return QWidget::keyPressEvent(event);
  }
  if (next.x() < 0 || next.y() < 0 || next.x() >= content_.columns.size() ||
      next.y() >= content_.rows.size())
    return;
  cursor_ = next;
  update();
}

QString HeatMap::tip_at(const QPointF& point) const {
  const QPoint cell = cell_of(point);
  if (cell.x() < 0) return {};
  return QString("%1 %2, %3 %4\n%5")
      .arg(content_.row_title, content_.rows[cell.y()], content_.column_title,
           content_.columns[cell.x()],
           content_.texts[static_cast<std::size_t>(cell.y())][static_cast<std::size_t>(cell.x())]);
}

}  // namespace meshwright::gui
