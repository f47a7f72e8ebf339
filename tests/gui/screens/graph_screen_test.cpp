/// Planning an ONNX file, as a user would.
#include "gui/screens/graph_screen.hpp"

#include <QComboBox>
#include <QLabel>
#include <QSpinBox>
#include <QTemporaryDir>
#include <set>

#include "core/formats/file.hpp"
#include "gui/widgets/graph_layout.hpp"
#include "tests/gui/window/window_fixture.hpp"
#include "tests/models/onnx/onnx_file.hpp"

namespace meshwright::gui {
namespace {

/// Eight products with ReLU between them, and a residual connection around each pair.
OnnxFile layers(bool is_symbolic) {
  OnnxFile file;
  file.input("x0", {is_symbolic ? OnnxDimension("batch") : OnnxDimension(std::int64_t{4}),
                    OnnxDimension(std::int64_t{4096})});
  for (int i = 0; i < 4; ++i) {
    const std::string n = std::to_string(i), in = "x" + n, out = "x" + std::to_string(i + 1);
    file.weight("a" + n, {4096, 4096}).weight("b" + n, {4096, 4096});
    file.node({"MatMul", {in, "a" + n}, {"h" + n}, {}, "up" + n});
    file.node({"Relu", {"h" + n}, {"r" + n}, {}, "relu" + n});
    file.node({"MatMul", {"r" + n, "b" + n}, {"y" + n}, {}, "down" + n});
    file.node({"Add", {"y" + n, in}, {out}, {}, "add" + n});
  }
  return file;
}

class GraphScreenTest : public WindowTest {
 protected:
  QTemporaryDir folder;
  GraphScreen& open(const OnnxFile& file) {
    const QString path = folder.filePath("layers.onnx");
    write_file(path.toStdString(), file.bytes());
    workbench->open({path});
    EXPECT_TRUE(settles());
    return screen<GraphScreen>("graph");
  }
};

TEST_F(GraphScreenTest, PlansAnOpenedFile) {
  GraphScreen& graph = open(layers(/*is_symbolic=*/true));
  EXPECT_TRUE(graph.isVisible());
  ASSERT_NE(graph.answer(), nullptr);
  const std::vector<SizedGraphPlan>& plans = graph.answer()->found.plans;
  ASSERT_EQ(graph.table().rowCount(), static_cast<int>(plans.size()));
  ASSERT_GT(plans.size(), 1U);
  // Plans with several stages: every stage has boxes of its own.
  for (std::size_t row = 0; row < plans.size(); ++row) {
    const std::size_t stages = plans[row].plan.training.partition.stages.size();
    if (stages < 2) continue;
    graph.table().setCurrentCell(static_cast<int>(row), 0);
    ASSERT_TRUE(settles());
    std::set<std::int32_t> drawn;
    for (const GraphBox& box : graph.map().drawing()->boxes) drawn.insert(box.stage);
    EXPECT_EQ(drawn.size(), stages);
    auto* view = graph.findChild<TimelineView*>();
    ASSERT_NE(view->tracks(), nullptr);
    return;
  }
  FAIL() << "no plan with several stages";
}

TEST_F(GraphScreenTest, ListsTheOperatorsOfABox) {
  GraphScreen& graph = open(layers(/*is_symbolic=*/true));
  const GraphDrawing& drawing = *graph.map().drawing();
  for (std::size_t box = 0; box < drawing.boxes.size(); ++box) {
    graph.map().choose(static_cast<int>(box));
    auto* operators = qobject_cast<QTableWidget*>(graph.inspector());
    ASSERT_EQ(operators->rowCount(), static_cast<int>(drawing.boxes[box].nodes.size()));
    const std::int32_t first = drawing.boxes[box].nodes.front();
    EXPECT_EQ(operators->item(0, 0)->text().toStdString(),
              graph.answer()->found.graph.nodes[static_cast<std::size_t>(first)].name);
  }
}

TEST_F(GraphScreenTest, SaysWhatAFixedBatchNeeds) {
  GraphScreen& graph = open(layers(/*is_symbolic=*/false));
  EXPECT_EQ(graph.answer(), nullptr);
  const auto says = [&](const QString& text) {
    for (const QLabel* label : graph.findChildren<QLabel*>())
      if (label->text().contains(text)) return true;
    return false;
  };
  EXPECT_TRUE(says("the micro-batch size is fixed"));
  for (QSpinBox* spin : graph.findChildren<QSpinBox*>())
    if (spin->specialValueText() == "all") spin->setValue(4);
  graph.start();
  EXPECT_TRUE(settles());
  EXPECT_NE(graph.answer(), nullptr);
}

TEST_F(GraphScreenTest, SaysWhichDegreesThereAre) {
  GraphScreen& graph = open(layers(/*is_symbolic=*/true));
  for (QComboBox* box : graph.findChildren<QComboBox*>())
    if (box->findData(8) >= 0) box->setCurrentIndex(box->findData(8));
  for (QSpinBox* spin : graph.findChildren<QSpinBox*>())
    if (spin->value() == 8) spin->setValue(12);
  graph.start();
  EXPECT_TRUE(settles());
  QStringList texts;
  for (const QLabel* label : graph.findChildren<QLabel*>()) texts += label->text();
  EXPECT_TRUE(texts.join("|").contains("8 tensor-parallel devices on 12 GPUs in nodes of 8"));
}

/// From top to bottom, without overlaps.
TEST(GraphLayout, PlacesReadersBelow) {
  const KernelGraph graph = layers(/*is_symbolic=*/false).read({.dtype = Dtype::kBf16});
  std::vector<std::int32_t> group(graph.nodes.size()), stage(graph.nodes.size(), 0);
  for (std::size_t v = 0; v < group.size(); ++v) group[v] = static_cast<std::int32_t>(v);
  GraphDrawing drawing = draw_groups(graph, group, stage);
  lay_out(
      drawing, [](const QString& text) { return 7.0 * static_cast<double>(text.size()); }, 14);
  ASSERT_EQ(drawing.boxes.size(), graph.nodes.size());
  for (const GraphArrow& arrow : drawing.arrows)
    EXPECT_LT(drawing.boxes[arrow.from].place.bottom(), drawing.boxes[arrow.to].place.top());
  const QRectF paper(QPointF(), drawing.size);
  for (std::size_t a = 0; a < drawing.boxes.size(); ++a) {
    EXPECT_TRUE(paper.contains(drawing.boxes[a].place));
    for (std::size_t b = 0; b < a; ++b)
      EXPECT_FALSE(drawing.boxes[a].place.intersects(drawing.boxes[b].place));
  }
}

}  // namespace
}  // namespace meshwright::gui
