#include "models/onnx/kernel_units.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/models/onnx/onnx_file.hpp"

namespace meshwright {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

/// A sharding by what it divides: the size of the product, and the dimension of the output, -1 if
/// the output is a sum.
struct Divided {
  std::int64_t parts = 1;
  ProductSide side = ProductSide::kBatch;
  std::int32_t output = -1;
  double parameters = 0;
  friend bool operator==(const Divided&, const Divided&) = default;
  friend void PrintTo(const Divided& d, std::ostream* out) {
    *out << "{parts " << d.parts << ", side " << static_cast<int>(d.side) << ", output " << d.output
         << ", parameters " << d.parameters << "}";
  }
};

std::int32_t tensor_after(const KernelGraph& graph, std::int32_t node) {
  for (const KernelGraphEdge& edge : graph.edges)
    if (edge.source == node) return edge.tensor;
  return -1;
}

/// Of the unit of a node.
std::vector<Divided> shardings_of(const KernelGraph& graph, std::int32_t node) {
  const auto unit = std::ranges::find_if(graph.units, [&](const KernelUnit& each) {
    return std::ranges::find(each.nodes, node) != each.nodes.end();
  });
  std::vector<Divided> divided;
  if (unit == graph.units.end()) return divided;
  const std::int32_t output = tensor_after(graph, unit->nodes.back());
  for (const KernelSharding& each : unit->shardings) {
    std::int32_t dim = -1;
    for (const ShardedTensor& tensor : each.tensors)
      if (tensor.tensor == output) dim = tensor.dim;
    EXPECT_EQ(each.gives_sums, dim < 0);
    divided.push_back({each.parts, each.side, dim, each.parameters});
  }
  return divided;
}

/// x [4, 8, 16] -> h [4, 8, 64] with a bias -> GELU -> [4, 8, 16] -> ReLU.
OnnxFile mlp() {
  OnnxFile file;
  file.input("x", {4, 8, 16})
      .weight("w1", {16, 64})
      .weight("b1", {64})
      .weight("w2", {64, 16})
      .node({"MatMul", {"x", "w1"}, {"h"}})
      .node({"Add", {"h", "b1"}, {"hb"}})
      .node({"Gelu", {"hb"}, {"g"}})
      .node({"MatMul", {"g", "w2"}, {"y"}})
      .node({"Relu", {"y"}, {"z"}})
      .node({"Relu", {"z"}, {"end"}})
      .output("end");
  return file;
}

/// Along the columns or the depth; along rows every device would need the whole matrix. The bias is
/// divided along the columns: 64 of 16 * 64 + 64 parameters are whole along the depth.
TEST(KernelUnits, DivideProductsWithParameters) {
  const KernelGraph graph = mlp().read();
  constexpr double kMatrix = 16.0 / 17;
  EXPECT_THAT(shardings_of(graph, 0),
              UnorderedElementsAre(Divided{64, ProductSide::kColumns, 2, 1},
                                   Divided{16, ProductSide::kDepth, -1, kMatrix}));
  EXPECT_THAT(shardings_of(graph, 3),
              UnorderedElementsAre(Divided{16, ProductSide::kColumns, 2, 1},
                                   Divided{64, ProductSide::kDepth, -1, 1}));
}

TEST(KernelUnits, DivideElementsAlongAllDimensions) {
  const KernelGraph graph = mlp().read();
  EXPECT_THAT(shardings_of(graph, 2), UnorderedElementsAre(Divided{4, ProductSide::kBatch, 0, 0},
                                                           Divided{8, ProductSide::kBatch, 1, 0},
                                                           Divided{64, ProductSide::kBatch, 2, 0}));
}

/// Rows of a norm stay whole.
TEST(KernelUnits, KeepRowsOfNorms) {
  OnnxFile file;
  file.input("x", {4, 8, 16})
      .weight("scale", {16})
      .node({"Relu", {"x"}, {"r"}})
      .node({"LayerNormalization", {"r", "scale"}, {"n"}})
      .node({"Relu", {"n"}, {"y"}})
      .output("y");
  const KernelGraph graph = file.read();
  EXPECT_THAT(shardings_of(graph, 1), UnorderedElementsAre(Divided{4, ProductSide::kBatch, 0, 0},
                                                           Divided{8, ProductSide::kBatch, 1, 0}));
}

/// The vocabulary is summed over, and the width divides table and result. Every device would need
/// the whole table for its part of the tokens.
TEST(KernelUnits, DivideTablesOfEmbeddings) {
  OnnxFile file;
  file.input("tokens", {4, 8}, onnx::ElementType::kInt64)
      .weight("table", {100, 16})
      .node({"Gather", {"table", "tokens"}, {"x"}})
      .node({"Relu", {"x"}, {"y"}})
      .output("y");
  EXPECT_THAT(shardings_of(file.read(), 0),
              UnorderedElementsAre(Divided{100, ProductSide::kBatch, -1, 1},
                                   Divided{16, ProductSide::kBatch, 2, 1}));
}

/// Queries, keys and values of 4 heads, from one product of width 48: fused attention is divided by
/// sequences or heads, and the columns of the product by heads, too, as they are divided before
/// they are sliced.
TEST(KernelUnits, DivideAttentionByHeads) {
  OnnxFile file;
  file.input("x", {2, 8, 16})
      .weight("w", {16, 48})
      .integers("heads", {2, 8, 4, 4})
      .integers("flat", {2, 8, 16})
      .scalar("half", 0.5)
      .node({"MatMul", {"x", "w"}, {"qkv"}})
      .node({"Split", {"qkv"}, {"q", "k", "v"}, {{"axis", std::int64_t{2}}}});
  for (const char* each : {"q", "k", "v"}) {
    const std::string name = each;
    file.node({"Reshape", {name, "heads"}, {name + "r"}});
    file.node({"Transpose",
               {name + "r"},
               {name + "t"},
               {{"perm", name == "k" ? std::vector<std::int64_t>{0, 2, 3, 1}
                                     : std::vector<std::int64_t>{0, 2, 1, 3}}}});
  }
  file.node({"MatMul", {"qt", "kt"}, {"scores"}})
      .node({"Mul", {"scores", "half"}, {"scaled"}})
      .node({"Softmax", {"scaled"}, {"p"}, {{"axis", std::int64_t{-1}}}})
      .node({"MatMul", {"p", "vt"}, {"o"}})
      .node({"Transpose", {"o"}, {"ot"}, {{"perm", std::vector<std::int64_t>{0, 2, 1, 3}}}})
      .node({"Reshape", {"ot", "flat"}, {"y"}})
      .node({"Relu", {"y"}, {"z"}})
      .output("z");
  const KernelGraph graph = file.read();
  const auto attention = std::ranges::find_if(graph.nodes, [](const KernelGraphNode& node) {
    return node.forward.size() == 1 && node.forward[0].kind == KernelKind::kAttention;
  });
  ASSERT_NE(attention, graph.nodes.end());
  const auto index = static_cast<std::int32_t>(attention - graph.nodes.begin());
  EXPECT_THAT(shardings_of(graph, index),
              UnorderedElementsAre(Divided{2, ProductSide::kBatch, 0, 0},
                                   Divided{4, ProductSide::kBatch, 1, 0}));
  EXPECT_THAT(shardings_of(graph, 0),
              UnorderedElementsAre(Divided{48, ProductSide::kColumns, 2, 1},
                                   Divided{16, ProductSide::kDepth, -1, 1}));
}

/// Gate and value are one product: their columns are divided together.
TEST(KernelUnits, JoinProductsOfOneTensor) {
  OnnxFile file;
  file.input("x", {4, 16})
      .weight("wg", {16, 32})
      .weight("wu", {16, 32})
      .node({"MatMul", {"x", "wg"}, {"g"}})
      .node({"MatMul", {"x", "wu"}, {"u"}})
      .node({"Mul", {"g", "u"}, {"y"}})
      .output("y");
  const KernelGraph graph = file.read();
  ASSERT_EQ(graph.units.size(), 2U);
  EXPECT_THAT(graph.units[0].nodes, ElementsAre(0, 1));
  EXPECT_THAT(shardings_of(graph, 0), ElementsAre(Divided{32, ProductSide::kColumns, 1, 1},
                                                  Divided{16, ProductSide::kDepth, -1, 1}));
}

/// The labels' losses are added up over the devices that share the classes.
TEST(KernelUnits, ShareClassesOfALoss) {
  OnnxFile file;
  file.input("x", {8, 4})
      .input("labels", {8}, onnx::ElementType::kInt64)
      .weight("w", {4, 100})
      .node({"MatMul", {"x", "w"}, {"logits"}})
      .node({"SoftmaxCrossEntropyLoss", {"logits", "labels"}, {"loss"}})
      .output("loss");
  const KernelGraph graph = file.read();
  ASSERT_EQ(graph.units.size(), 2U);
  ASSERT_EQ(graph.units[1].shardings.size(), 1U);
  const KernelSharding& classes = graph.units[1].shardings[0];
  EXPECT_EQ(classes.parts, 100);
  EXPECT_TRUE(classes.gives_sums);
  EXPECT_EQ(classes.statistics, Bytes(8 * 4));
  EXPECT_EQ(graph.units[1].results, Bytes(4));
}

/// Channels of convolutions; grouped ones by groups if every group is a channel.
TEST(KernelUnits, DivideChannels) {
  OnnxFile file;
  file.input("x", {2, 8, 10, 10})
      .weight("w", {32, 8, 3, 3})
      .weight("d", {32, 1, 3, 3})
      .node({"Conv", {"x", "w"}, {"y"}})
      .node({"Conv", {"y", "d"}, {"z"}, {{"group", std::int64_t{32}}}})
      .node({"Relu", {"z"}, {"end"}})
      .output("end");
  const KernelGraph graph = file.read();
  EXPECT_THAT(shardings_of(graph, 0), UnorderedElementsAre(Divided{32, ProductSide::kColumns, 1, 1},
                                                           Divided{8, ProductSide::kDepth, -1, 1}));
  EXPECT_THAT(shardings_of(graph, 1), ElementsAre(Divided{32, ProductSide::kBatch, 1, 1}));
}

/// Rows of experts: 8 tokens of width 4 over 2 groups.
TEST(KernelUnits, DivideGroupedProducts) {
  OnnxFile file;
  file.input("x", {8, 4})
      .weight("w", {2, 4, 6})
      .node({"GroupedMatMul", {"x", "w"}, {"y"}, {}, {}, "meshwright"})
      .node({"Relu", {"y"}, {"z"}})
      .output("z");
  const KernelGraph graph = file.read();
  EXPECT_THAT(shardings_of(graph, 0), UnorderedElementsAre(Divided{6, ProductSide::kColumns, 1, 1},
                                                           Divided{4, ProductSide::kDepth, -1, 1}));
  const Kernel& product = graph.nodes[0].forward.at(0);
  EXPECT_EQ(product.kind, KernelKind::kGroupedGemm);
  EXPECT_EQ(product.batch, 2);
  EXPECT_EQ(product.m, 4);
  EXPECT_EQ(product.flops, Flops(2.0 * 8 * 4 * 6));
}

/// Sequences and heads of the operator, and of a bias per head.
TEST(KernelUnits, DivideTheAttentionOperator) {
  OnnxFile file;
  for (const char* name : {"q", "k", "v"}) file.weight(name, {2, 4, 8, 16});
  file.weight("bias", {1, 4, 8, 8})
      .input("x", {2, 4, 8, 16})
      .node({"Add", {"x", "q"}, {"xq"}})
      .node({"Attention", {"xq", "k", "v", "bias"}, {"y"}})
      .node({"Relu", {"y"}, {"z"}})
      .output("z");
  const KernelGraph graph = file.read();
  // The bias is a matrix of parameters, which is divided by heads only.
  EXPECT_THAT(shardings_of(graph, 1), ElementsAre(Divided{4, ProductSide::kBatch, 1, 1}));
}

/// 2 heads of width 8 in one dimension.
TEST(KernelUnits, DivideFlatAttentionByHeads) {
  OnnxFile file;
  file.input("x", {1, 4, 16})
      .node({"Relu", {"x"}, {"q"}})
      .node({"Attention",
             {"q", "q", "q"},
             {"y"},
             {{"q_num_heads", std::int64_t{2}}, {"kv_num_heads", std::int64_t{2}}}})
      .node({"Relu", {"y"}, {"z"}})
      .output("z");
  EXPECT_THAT(shardings_of(file.read(), 1), ElementsAre(Divided{2, ProductSide::kBatch, 2, 0}));
}

/// A batch of products: by batch, rows, columns, or the sum over j.
TEST(KernelUnits, DivideEinsteinSums) {
  OnnxFile file;
  file.input("x", {3, 4, 5})
      .input("w", {3, 5, 6})
      .node({"Relu", {"x"}, {"a"}})
      .node({"Relu", {"w"}, {"b"}})
      .node({"Einsum", {"a", "b"}, {"y"}, {{"equation", std::string("bij,bjk->bik")}}})
      .node({"Relu", {"y"}, {"z"}})
      .output("z");
  EXPECT_THAT(shardings_of(file.read(), 2),
              UnorderedElementsAre(
                  Divided{3, ProductSide::kBatch, 0, 0}, Divided{4, ProductSide::kRows, 1, 0},
                  Divided{6, ProductSide::kColumns, 2, 0}, Divided{5, ProductSide::kDepth, -1, 0}));
}

/// Parts of the rows of a softmax need their maxima and sums.
TEST(KernelUnits, SumStatisticsOfSharedRows) {
  OnnxFile file;
  file.input("x", {4, 8})
      .node({"Relu", {"x"}, {"a"}})
      .node({"LogSoftmax", {"a"}, {"y"}, {{"axis", std::int64_t{1}}}})
      .output("y");
  const KernelGraph graph = file.read();
  const std::vector<KernelSharding>& shardings = graph.units.back().shardings;
  ASSERT_EQ(shardings.size(), 2U);
  EXPECT_EQ(shardings[0].statistics + shardings[1].statistics, Bytes(4 * 4));
}

TEST(KernelUnits, AreMissingInInference) {
  EXPECT_THAT(mlp().read({.dtype = Dtype::kFp32, .is_training = false}).units, IsEmpty());
}

}  // namespace
}  // namespace meshwright
