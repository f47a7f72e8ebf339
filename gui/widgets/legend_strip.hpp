/// Color legend of a timeline: a swatch and a label for every slice kind shown.
#pragma once

#include <QWidget>
#include <vector>

#include "gui/timeline/colours.hpp"

namespace meshwright::gui {

class LegendStrip : public QWidget {
  Q_OBJECT
 public:
  explicit LegendStrip(QWidget* parent = nullptr);
  void show_kinds(std::vector<SliceKind> kinds);
  void set_colours(const TimelineColours& colours);
  QSize sizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  std::vector<SliceKind> kinds_;
  TimelineColours colours_;
};

}  // namespace meshwright::gui
