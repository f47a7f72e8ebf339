#include "gui/widgets/graph_layout.hpp"

#include <gvc.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "core/base/indices.hpp"

namespace meshwright::gui {
namespace {

constexpr double kPointsPerInch = 72, kMargin = 12;

struct FreeContext {
  void operator()(GVC_t* context) const { gvFreeContext(context); }
};
struct CloseGraph {
  void operator()(Agraph_t* graph) const { agclose(graph); }
};

/// Graphviz does not change the names that it is given.
char* text_of(const char* text) { return const_cast<char*>(text); }

void set(void* object, const char* name, const std::string& value) {
  agsafeset(object, text_of(name), text_of(value.c_str()), text_of(""));
}

Flops work_of(const KernelGraphNode& node) { return forward_flops(node) + backward_flops(node); }

}  // namespace

GraphDrawing draw_groups(const KernelGraph& graph, const std::vector<std::int32_t>& group,
                         const std::vector<std::int32_t>& stage) {
  GraphDrawing drawing;
  std::map<std::int32_t, std::size_t> box_of;
  std::vector<std::size_t> box(graph.nodes.size());
  for (std::size_t v = 0; v < graph.nodes.size(); ++v) {
    const auto [known, is_new] = box_of.emplace(group[v], drawing.boxes.size());
    if (is_new) drawing.boxes.emplace_back();
    box[v] = known->second;
    drawing.boxes[box[v]].nodes.push_back(static_cast<std::int32_t>(v));
    drawing.boxes[box[v]].stage = stage[v];
  }
  for (GraphBox& each : drawing.boxes) {
    const auto by_work = [&](std::int32_t a, std::int32_t b) {
      return work_of(graph.nodes[to_index(a)]) < work_of(graph.nodes[to_index(b)]);
    };
    const std::int32_t largest = *std::ranges::max_element(each.nodes, by_work);
    each.name = QString::fromStdString(graph.nodes[to_index(largest)].name);
    if (each.nodes.size() > 1) each.name += QString(" +%1").arg(each.nodes.size() - 1);
  }
  std::set<std::pair<std::size_t, std::size_t>> arrows;
  for (const KernelGraphEdge& edge : graph.edges) {
    const std::size_t from = box[to_index(edge.source)], to = box[to_index(edge.target)];
    if (from != to) arrows.emplace(from, to);
  }
  for (const auto& [from, to] : arrows) drawing.arrows.push_back({from, to});
  return drawing;
}

void lay_out(GraphDrawing& drawing, const std::function<double(const QString&)>& text_width,
             double text_height) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  const std::unique_ptr<GVC_t, FreeContext> context(gvContext());
  const std::unique_ptr<Agraph_t, CloseGraph> graph(
      agopen(text_of("operators"), Agdirected, nullptr));
  set(graph.get(), "splines", "false");
  set(graph.get(), "nodesep", "0.15");
  set(graph.get(), "ranksep", "0.3");
  set(graph.get(), "nslimit", "2");
  std::vector<Agnode_t*> nodes;
  for (std::size_t b = 0; b < drawing.boxes.size(); ++b) {
    nodes.push_back(agnode(graph.get(), text_of(std::to_string(b).c_str()), 1));
    const double width = text_width(drawing.boxes[b].name) + 2 * kMargin;
    const double height = text_height + kMargin;
    set(nodes[b], "shape", "box");
    set(nodes[b], "fixedsize", "true");
    set(nodes[b], "label", "");
    set(nodes[b], "width", std::to_string(width / kPointsPerInch));
    set(nodes[b], "height", std::to_string(height / kPointsPerInch));
    drawing.boxes[b].place = QRectF(0, 0, width, height);
  }
  for (const GraphArrow& arrow : drawing.arrows)
    agedge(graph.get(), nodes[arrow.from], nodes[arrow.to], nullptr, 1);
  if (gvLayout(context.get(), graph.get(), "dot") != 0) return;
  const boxf bounds = GD_bb(graph.get());
  for (std::size_t b = 0; b < nodes.size(); ++b) {
    const pointf center = ND_coord(nodes[b]);
    drawing.boxes[b].place.moveCenter(
        {kMargin + center.x - bounds.LL.x, kMargin + bounds.UR.y - center.y});
  }
  drawing.size = {bounds.UR.x - bounds.LL.x + 2 * kMargin, bounds.UR.y - bounds.LL.y + 2 * kMargin};
  gvFreeLayout(context.get(), graph.get());
}

}  // namespace meshwright::gui
