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
  QSize sizeHint() const override { return {420, 260}; }

 protected:
  void paint(QPainter& painter, const ChartColors& colors, const QRect& exposed) const override;

 private:
  QString before_, after_;
  std::vector<WaterfallPart> parts_;
  Ticks total_before_, total_after_;
};

}  // namespace meshwright::gui
