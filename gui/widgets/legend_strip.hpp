/// Color legend of a timeline: a swatch and a label for every slice kind shown.
#pragma once

#include <QWidget>
#include <vector>

#include "gui/timeline/colors.hpp"

namespace meshwright::gui {

class LegendStrip : public QWidget {
  Q_OBJECT
 public:
  explicit LegendStrip(QWidget* parent = nullptr);
  void show_kinds(std::vector<SliceKind> kinds);
  void set_colors(const TimelineColors& colors);
  QSize sizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  std::vector<SliceKind> kinds_;
  TimelineColors colors_;
};

}  // namespace meshwright::gui
