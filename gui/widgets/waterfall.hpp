/// Waterfall chart from one step time to another, part by part.
#pragma once

#include <vector>

#include "core/base/units.hpp"
#include "gui/widgets/chart.hpp"

namespace meshwright::gui {

struct WaterfallPart {
  QString name;
  Ticks before, after;
};

class Waterfall : public Chart {
  Q_OBJECT
 public:
  explicit Waterfall(QWidget* parent = nullptr);
  /// The parts of each side add up to its total; equal parts are omitted.
  void show_parts(const QString& before, const QString& after, std::vector<WaterfallPart> parts);
  /// True if the axis does not start at zero; the chart marks this.
  bool is_truncated() const { return axis_range().low > Ticks(); }
  QSize sizeHint() const override { return {420, 260}; }

 protected:
  void paint(QPainter& painter, const ChartColors& colors, const QRect& exposed) const override;

 private:
  struct Range {
    Ticks low, high;
  };
  Range axis_range() const;
  void mark_truncation(QPainter& painter, const ChartColors& colors, const QRectF& plot,
                       double height) const;

  QString before_, after_;
  std::vector<WaterfallPart> parts_;
  Ticks total_before_, total_after_;
};

}  // namespace meshwright::gui
