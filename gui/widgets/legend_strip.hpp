/// Color legend of a timeline: a swatch and a label for everything shown, in as many lines as it
/// takes.
#pragma once

#include <QBrush>
#include <QWidget>
#include <functional>
#include <vector>

#include "gui/timeline/colors.hpp"

class QPainter;

namespace meshwright::gui {

struct LegendContent {
  std::vector<SliceKind> kinds;
  bool has_chunks = false;         ///< several model chunks per rank
  bool has_causes = false;         ///< bubbles are hatched by cause
  bool has_memory = false;         ///< memory is shown below the rows
  bool microbatch_colors = false;  ///< passes are colored by micro-batch instead of by kind
  friend bool operator==(const LegendContent&, const LegendContent&) = default;
};

class LegendStrip : public QWidget {
  Q_OBJECT
 public:
  explicit LegendStrip(QWidget* parent = nullptr);
  void show_content(const LegendContent& content);
  const LegendContent& content() const { return content_; }
  void set_colors(const TimelineColors& colors);
  QSize sizeHint() const override;
  bool hasHeightForWidth() const override { return true; }
  int heightForWidth(int width) const override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  struct Item {
    QString word;
    std::function<void(QPainter&, const QRect&)> paint;
  };
  std::vector<Item> items() const;
  /// Calls visit(item, swatch) with the place of every swatch; returns the height.
  int arrange(int width, const std::function<void(const Item&, const QRect&)>& visit) const;

  LegendContent content_;
  TimelineColors colors_;
};

}  // namespace meshwright::gui
