/// Where the boxes of a graph are drawn: from top to bottom, by Graphviz (dot: Gansner et al., "A
/// Technique for Drawing Directed Graphs", 1993).
#pragma once

#include <QPointF>
#include <QRectF>
#include <QSizeF>
#include <QString>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/model/kernel_graph.hpp"

namespace meshwright::gui {

/// Nodes that are drawn as one.
struct GraphBox {
  std::vector<std::int32_t> nodes;  ///< ascending
  std::int32_t stage = 0;
  QString name;  ///< of its node with the most work
  QRectF place;  ///< in pixels
};
struct GraphArrow {
  std::size_t from = 0, to = 0;  ///< boxes
};
struct GraphDrawing {
  std::vector<GraphBox> boxes;  ///< in topological order
  std::vector<GraphArrow> arrows;
  QSizeF size;
};

/// One box per group of nodes, without places. `group` and `stage` by node.
GraphDrawing draw_groups(const KernelGraph& graph, const std::vector<std::int32_t>& group,
                         const std::vector<std::int32_t>& stage);

/// Sets places and size; boxes are as wide as `text_width` of their names says. Takes about a
/// second for 300 boxes: call it in a job. One thread at a time, as Graphviz has global state.
void lay_out(GraphDrawing& drawing, const std::function<double(const QString&)>& text_width,
             double text_height);

}  // namespace meshwright::gui
