#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/complaints.hpp"
#include "tests/models/onnx/onnx_file.hpp"

namespace meshwright {
namespace {

using Ints = std::vector<std::int64_t>;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Expected {
  Phase phase;
  std::int64_t batch, m, n, k;
  double flops;
  std::int64_t bytes;
};

void expect_kernel(const Kernel& kernel, const Expected& expected) {
  EXPECT_EQ(kernel.phase, expected.phase);
  EXPECT_EQ(kernel.batch, expected.batch);
  EXPECT_EQ(kernel.m, expected.m);
  EXPECT_EQ(kernel.n, expected.n);
  EXPECT_EQ(kernel.k, expected.k);
  EXPECT_EQ(kernel.flops, Flops(expected.flops));
  EXPECT_EQ(kernel.memory_traffic, Bytes(expected.bytes));
}

/// fp32. y = x w: 4 rows, 3 columns, depth 2: 2 * 24 FLOP. x is an input of the graph and needs no
/// gradient; dw = x^T dy adds to fp32 sums, which are read and written.
TEST(OnnxWork, OfALinearLayer) {
  OnnxFile file;
  file.input("x", {4, 2}).weight("w", {3, 2}).weight("b", {3});
  file.node({"Gemm", {"x", "w", "b"}, {"y"}, {{"transB", std::int64_t{1}}}, "linear"});
  const KernelGraph graph = file.read();
  ASSERT_EQ(graph.nodes.size(), 1U);
  const KernelGraphNode& node = graph.nodes[0];
  EXPECT_EQ(node.name, "linear");
  EXPECT_EQ(node.parameters, 6 + 3);
  EXPECT_EQ(node.output, Bytes(4 * 3 * 4));
  EXPECT_EQ(node.saved, Bytes(4 * 2 * 4));  // x
  ASSERT_EQ(node.forward.size(), 1U);
  expect_kernel(node.forward[0], {Phase::kForward, 1, 4, 3, 2, 48, 4 * (8 + 6 + 12)});
  ASSERT_EQ(node.backward.size(), 2U);
  expect_kernel(node.backward[0],
                {Phase::kBackwardWeight, 1, 2, 3, 4, 48, 4 * (8 + 12) + 2 * 4 * 6});
  EXPECT_EQ(node.backward[1].routine, Routine::kBias);  // sums the rows of dy
  EXPECT_EQ(node.backward[1].memory_traffic, Bytes(4 * 12));
}

/// The second layer needs both gradients: twice the FLOPs of its forward pass.
TEST(OnnxWork, OfBackwardIsTwiceThatOfForwardAfterTheFirstLayer) {
  OnnxFile file;
  file.input("x", {4, 2}).weight("w", {2, 3}).weight("v", {3, 5});
  file.node({"MatMul", {"x", "w"}, {"h"}}).node({"Relu", {"h"}, {"r"}});
  file.node({"MatMul", {"r", "v"}, {"y"}});
  const KernelGraph graph = file.read();
  ASSERT_EQ(graph.nodes.size(), 3U);
  EXPECT_EQ(forward_flops(graph.nodes[2]), Flops(2 * 4 * 5 * 3));
  ASSERT_EQ(graph.nodes[2].backward.size(), 2U);
  expect_kernel(graph.nodes[2].backward[0],
                {Phase::kBackwardInput, 1, 4, 3, 5, 120, 4 * (20 + 15 + 12)});
  expect_kernel(graph.nodes[2].backward[1],
                {Phase::kBackwardWeight, 1, 3, 5, 4, 120, 4 * (12 + 20) + 2 * 4 * 15});
  // Relu and the product after it save the same tensor, once.
  EXPECT_EQ(graph.nodes[0].saved, Bytes(4 * 2 * 4));
  EXPECT_EQ(graph.nodes[1].saved, Bytes(4 * 3 * 4));
  EXPECT_EQ(graph.nodes[2].saved, Bytes(0));
  EXPECT_EQ(graph.edges,
            (std::vector<KernelGraphEdge>{{0, 1, 3, Bytes(48)}, {1, 2, 4, Bytes(48)}}));
  const KernelGraph inference = file.read({.dtype = Dtype::kFp32, .is_training = false});
  EXPECT_THAT(inference.nodes[2].backward, IsEmpty());
  EXPECT_EQ(inference.nodes[1].saved, Bytes(0));
}

/// Batches of either operand are broadcast; a matrix on the right serves all rows.
TEST(OnnxWork, OfBatchedProducts) {
  const auto product = [](const std::vector<OnnxDimension>& a,
                          const std::vector<OnnxDimension>& b) {
    OnnxFile file;
    file.input("a", a).input("b", b).node({"MatMul", {"a", "b"}, {"y"}});
    return file.read().nodes.at(0).forward.at(0);
  };
  expect_kernel(product({2, 3, 4, 5}, {5, 6}),
                {Phase::kForward, 1, 24, 6, 5, 1440, 4 * (120 + 30 + 144)});
  expect_kernel(product({2, 1, 4, 5}, {3, 5, 6}),
                {Phase::kForward, 6, 4, 6, 5, 1440, 4 * (40 + 90 + 144)});
  expect_kernel(product({5}, {5, 6}), {Phase::kForward, 1, 1, 6, 5, 60, 4 * (5 + 30 + 6)});
}

/// 2 samples, 4 channels in 2 groups, 5 x 5, kernel 3 x 3: 3 x 3 windows; per group 3 of 6
/// channels, depth 2 * 9: 2 groups * 2 * 18 rows * 3 * 18. Groups of 3 columns are priced by memory
/// traffic.
TEST(OnnxWork, OfConvolutions) {
  const auto convolution = [](std::int64_t channels, std::int64_t group) {
    OnnxFile file;
    file.input("x", {2, 4, 5, 5}).weight("w", {channels, 4 / group, 3, 3});
    file.node({"Conv", {"x", "w"}, {"y"}, {{"group", group}}});
    return file.read().nodes.at(0).forward.at(0);
  };
  expect_kernel(convolution(32, 1), {Phase::kForward, 1, 18, 32, 36, 2 * 18 * 32 * 36,
                                     4 * (200 + 32 * 36 + 2 * 32 * 9)});
  expect_kernel(convolution(64, 2), {Phase::kForward, 2, 18, 32, 18, 2 * 2 * 18 * 32 * 18,
                                     4 * (200 + 64 * 18 + 2 * 64 * 9)});
  const Kernel few = convolution(6, 2);
  EXPECT_EQ(few.kind, KernelKind::kMemoryBound);
  EXPECT_EQ(few.flops, Flops(2 * 2 * 18 * 3 * 18));
  EXPECT_EQ(few.memory_traffic, Bytes(4 * (200 + 6 * 18 + 2 * 6 * 9)));
}

/// Every input element of 6 channels is multiplied by 5 * 3 weights: 2 * 4 * 15 * 6.
TEST(OnnxWork, OfTransposedConvolutions) {
  OnnxFile file;
  file.input("x", {1, 6, 4}).weight("w", {6, 5, 3});
  file.node({"ConvTranspose", {"x", "w"}, {"y"}});
  expect_kernel(file.read().nodes.at(0).forward.at(0),
                {Phase::kForward, 1, 4, 15, 6, 720, 4 * (24 + 90 + 30)});
}

TEST(OnnxWork, OfEinsteinSums) {
  const auto product = [](const std::string& equation, const std::vector<OnnxDimension>& a,
                          const std::vector<OnnxDimension>& b) {
    OnnxFile file;
    file.input("a", a).input("b", b);
    file.node({"Einsum", {"a", "b"}, {"y"}, {{"equation", equation}}});
    return file.read().nodes.at(0).forward.at(0);
  };
  expect_kernel(product("bhid, bhjd -> bhij", {2, 3, 4, 5}, {2, 3, 6, 5}),
                {Phase::kForward, 6, 4, 6, 5, 1440, 4 * (120 + 180 + 144)});
  expect_kernel(product("td,edf->tef", {4, 5}, {3, 5, 6}),
                {Phase::kForward, 1, 4, 18, 5, 720, 4 * (20 + 90 + 72)});
}

/// The ellipsis of "a" has two dimensions, that of "b" one, which is broadcast.
TEST(OnnxWork, OfEinsteinSumsWithEllipsis) {
  OnnxFile file;
  file.input("a", {2, 3, 4, 5}).input("b", {3, 5, 6});
  file.node({"Einsum", {"a", "b"}, {"y"}, {{"equation", "...ij,...jk->...ik"}}});
  expect_kernel(file.read().nodes.at(0).forward.at(0),
                {Phase::kForward, 3, 8, 6, 5, 1440, 4 * (120 + 90 + 144)});
}

/// Two steps of 3 rows; 4 gates of 5 units, 7 features. Products with W: 6 rows, 20 columns, depth
/// 7; with R: 2 times 3 rows, 20 columns, depth 5, which read R twice.
TEST(OnnxWork, OfLstm) {
  OnnxFile file;
  file.input("x", {2, 3, 7}).weight("w", {1, 20, 7}).weight("r", {1, 20, 5});
  file.node({"LSTM", {"x", "w", "r"}, {"y", "h", "c"}});
  const KernelGraphNode node = file.read().nodes.at(0);
  ASSERT_EQ(node.forward.size(), 3U);
  expect_kernel(node.forward[0],
                {Phase::kForward, 1, 6, 20, 7, 2 * 6 * 20 * 7, 4 * (42 + 140 + 120)});
  expect_kernel(node.forward[1],
                {Phase::kForward, 1, 6, 20, 5, 2 * 6 * 20 * 5, 4 * (6 * 5 + 6 * 20 + 2 * 100)});
  EXPECT_EQ(node.forward[1].pieces, 2);
  EXPECT_EQ(node.forward[2].launches, 2);
  EXPECT_EQ(node.parameters, 140 + 100);
  EXPECT_EQ(node.output, Bytes(4 * (30 + 15 + 15)));
  EXPECT_EQ(backward_flops(node), Flops(2 * 6 * 20 * 7 + 2 * 2 * 6 * 20 * 5));
  EXPECT_EQ(node.saved, Bytes(4 * (42 + 120 + 30)));  // input, gates, hidden states
}

/// The last state alone is read: the node is named by it, and its states are computed all the same.
TEST(OnnxWork, OfNodesWhoseFirstOutputIsOmitted) {
  OnnxFile file;
  file.input("x", {2, 3, 7}).weight("w", {1, 5, 7}).weight("r", {1, 5, 5});
  file.node({"RNN", {"x", "w", "r"}, {"", "h"}});
  const KernelGraphNode node = file.read().nodes.at(0);
  EXPECT_EQ(node.name, "h");
  EXPECT_EQ(forward_flops(node), Flops(2 * 6 * 5 * 7 + 2 * 6 * 5 * 5));
}

/// 2 heads of size 4, 3 queries, 5 keys: scores 2 * 2*3*5*4, and the same for the values.
TEST(OnnxWork, OfFusedAttention) {
  OnnxFile file;
  file.input("q", {1, 2, 3, 4}).input("k", {1, 2, 5, 4}).input("v", {1, 2, 5, 4});
  file.node({"Attention", {"q", "k", "v"}, {"y"}});
  const Kernel kernel = file.read().nodes.at(0).forward.at(0);
  EXPECT_EQ(kernel.kind, KernelKind::kAttention);
  expect_kernel(kernel, {Phase::kForward, 2, 3, 5, 4, 480, 4 * (24 + 40 + 40 + 24)});
}

/// Views cost nothing and have no memory of their own; conversions between floating-point types
/// neither.
TEST(OnnxWork, OfViewsIsNone) {
  OnnxFile file;
  file.input("x", {4, 6}).weight("w", {6, 6});
  file.node({"MatMul", {"x", "w"}, {"h"}}).integers("s", {2, 12});
  file.node({"Reshape", {"h", "s"}, {"r"}});
  file.node({"Cast", {"r"}, {"c"}, {{"to", std::int64_t{10}}}}).node({"Exp", {"c"}, {"e"}});
  file.node({"Sin", {"c"}, {"t"}});
  const KernelGraph graph = file.read();
  ASSERT_EQ(graph.nodes.size(), 5U);
  EXPECT_THAT(graph.nodes[1].forward, IsEmpty());
  EXPECT_THAT(graph.nodes[2].forward, IsEmpty());
  EXPECT_EQ(graph.nodes[0].saved, Bytes(4 * 24 + 4 * 24));  // x, and h, which Sin saves as c
  EXPECT_EQ(graph.nodes[2].saved, Bytes(0));
  EXPECT_EQ(graph.nodes[3].saved, Bytes(4 * 24));  // Exp saves its output
}

/// A normalization reads and writes 24 elements and reads 2 * 6 weights; it saves its input and
/// mean and deviation of 4 rows.
TEST(OnnxWork, OfLayerNormalization) {
  OnnxFile file;
  file.input("x", {4, 6}).weight("g", {6}).weight("b", {6});
  file.node({"LayerNormalization", {"x", "g", "b"}, {"y"}});
  const KernelGraphNode node = file.read().nodes.at(0);
  EXPECT_EQ(node.forward.at(0).routine, Routine::kLayerNorm);
  EXPECT_EQ(node.forward.at(0).memory_traffic, Bytes(4 * (24 + 24 + 12)));
  EXPECT_EQ(node.saved, Bytes(4 * (24 + 2 * 4)));
  EXPECT_EQ(node.parameters, 12);
}

/// Running mean and variance are not trained.
TEST(OnnxWork, OfBatchNormalizationExcludesRunningStatistics) {
  OnnxFile file;
  file.input("x", {2, 3, 4}).weight("g", {3}).weight("b", {3}).weight("m", {3}).weight("v", {3});
  file.node({"BatchNormalization", {"x", "g", "b", "m", "v"}, {"y"}});
  EXPECT_EQ(file.read().nodes.at(0).parameters, 6);
}

/// The transposed weight is a layout of a parameter: no node, and one owner.
TEST(OnnxWork, OfLayoutsOfParametersIsDoneBeforehand) {
  OnnxFile file;
  file.input("x", {4, 6}).weight("w", {6, 5});
  file.node({"MatMul", {"x", "w"}, {"h"}});
  file.node({"Transpose", {"w"}, {"t"}}).node({"MatMul", {"h", "t"}, {"y"}});
  const KernelGraph graph = file.read();
  ASSERT_EQ(graph.nodes.size(), 2U);
  EXPECT_EQ(graph.nodes[0].parameters, 30);
  EXPECT_EQ(graph.nodes[1].parameters, 0);
  EXPECT_THAT(graph.nodes[1].tied, ElementsAre(TiedParameters{0, 30}));
  EXPECT_EQ(graph.nodes[1].backward.back().phase, Phase::kBackwardWeight);
}

TEST(OnnxWork, OfUnknownOperatorsIsTheirTrafficOnRequest) {
  OnnxFile file;
  file.input("x", {4}).node({"Frobnicate", {"x"}, {"y"}, {}, "f", "acme"}).value_info("y", {8});
  const auto diagnostics = diagnostics_of([&] { file.read(); });
  ASSERT_EQ(diagnostics.size(), 1U);
  EXPECT_EQ(diagnostics[0],
            (Diagnostic{"m.onnx: node 'f' (Frobnicate)", "unknown operator of the domain 'acme'",
                        "use --unknown-operators memory-bound to price it by the bytes that it "
                        "reads and writes"}));
  const KernelGraph graph = file.read({.dtype = Dtype::kFp32, .allows_unknown_operators = true});
  EXPECT_EQ(graph.nodes.at(0).forward.at(0).memory_traffic, Bytes(4 * (4 + 8)));
}

TEST(OnnxWork, OfUnknownOperatorsNeedsTheShapesOfTheirOutputs) {
  OnnxFile file;
  file.input("x", {4}).node({"Reluu", {"x"}, {"y"}, {}, "f"});
  EXPECT_EQ(
      diagnostics_of([&] { file.read(); }).at(0).hint,
      "did you mean 'Relu'? use --unknown-operators memory-bound to price it by the bytes that "
      "it reads and writes");
  EXPECT_EQ(diagnostics_of([&] { file.read({.allows_unknown_operators = true}); }).at(0).what,
            "the shapes of its outputs are not known");
}

}  // namespace
}  // namespace meshwright
