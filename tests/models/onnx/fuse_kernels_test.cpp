#include "models/onnx/fuse_kernels.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "core/formats/file.hpp"
#include "tests/models/onnx/onnx_file.hpp"

namespace meshwright {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kFloat = 4;

std::vector<std::int32_t> fused_into(const KernelGraph& graph) {
  std::vector<std::int32_t> last;
  for (const KernelGraphNode& node : graph.nodes) last.push_back(node.fused_into);
  return last;
}

Bytes saved_bytes(const KernelGraph& graph) {
  Bytes sum;
  for (const KernelGraphNode& node : graph.nodes) sum += node.saved;
  return sum;
}

/// The traffic of the only kernel of a node in each direction, in elements of 4 bytes.
struct Traffic {
  std::int64_t forward = 0, backward = 0;
  friend bool operator==(const Traffic&, const Traffic&) = default;
};
Traffic traffic_of(const KernelGraphNode& node) {
  EXPECT_EQ(node.forward.size(), 1U);
  EXPECT_EQ(node.backward.size(), 1U);
  return {node.forward.at(0).memory_traffic.value / kFloat,
          node.backward.at(0).memory_traffic.value / kFloat};
}

/// h = x w, 4 rows of 3 columns: an activation that needs a gradient.
OnnxFile file_with_hidden() {
  OnnxFile file;
  file.input("x", {4, 2}).weight("w", {2, 3}).node({"MatMul", {"x", "w"}, {"h"}});
  return file;
}

/// The product with its traffic, and sums of the gradient's rows: 12 elements are read.
TEST(FuseKernels, AddsABiasInTheProduct) {
  OnnxFile file = file_with_hidden();
  file.weight("b", {3}).node({"Add", {"h", "b"}, {"y"}});
  const KernelGraph graph = file.read();
  EXPECT_THAT(fused_into(graph), ElementsAre(1, -1));
  EXPECT_THAT(graph.nodes[0].forward, IsEmpty());
  const KernelGraphNode& sum = graph.nodes[1];
  ASSERT_EQ(sum.forward.size(), 1U);
  EXPECT_EQ(sum.forward[0].kind, KernelKind::kGemm);
  EXPECT_EQ(sum.forward[0].memory_traffic, Bytes(kFloat * (8 + 6 + 12)));
  ASSERT_EQ(sum.backward.size(), 2U);
  EXPECT_EQ(sum.backward[0].kind, KernelKind::kGemm);
  EXPECT_EQ(sum.backward[1].routine, Routine::kBias);
  EXPECT_EQ(sum.backward[1].memory_traffic, Bytes(kFloat * 12));
  EXPECT_EQ(graph.nodes[0].saved, Bytes(kFloat * 8)) << "x";
  EXPECT_EQ(sum.saved, Bytes(0));
}

/// 0.5 h (1 + tanh(sqrt(2 / pi) (h + 0.044715 h^3))): h is read and y written; the gradient reads
/// that of y, and h again, and writes that of h.
TEST(FuseKernels, MakesOneKernelOfGelu) {
  OnnxFile file = file_with_hidden();
  for (const char* name : {"three", "c", "root", "one", "half"}) file.scalar(name, 0.5);
  file.node({"Pow", {"h", "three"}, {"cube"}}).node({"Mul", {"cube", "c"}, {"scaled"}});
  file.node({"Add", {"h", "scaled"}, {"sum"}}).node({"Mul", {"sum", "root"}, {"argument"}});
  file.node({"Tanh", {"argument"}, {"tanh"}}).node({"Add", {"tanh", "one"}, {"share"}});
  file.node({"Mul", {"h", "half"}, {"halved"}}).node({"Mul", {"halved", "share"}, {"y"}});
  const KernelGraph graph = file.read();
  ASSERT_EQ(graph.nodes.size(), 9U);
  EXPECT_THAT(fused_into(graph), ElementsAre(-1, 8, 8, 8, 8, 8, 8, 8, -1));
  const std::int64_t scalars = 5;
  EXPECT_EQ(traffic_of(graph.nodes[8]), (Traffic{2 * 12 + scalars, 3 * 12 + scalars}));
  EXPECT_EQ(graph.nodes[8].forward[0].routine, Routine::kGelu);
  EXPECT_EQ(saved_bytes(graph), Bytes(kFloat * (8 + 12))) << "x and h";
}

/// Gate and value are read, and their gradients written: 3 and 5 times 12 elements.
TEST(FuseKernels, MakesOneKernelOfAGate) {
  OnnxFile file = file_with_hidden();
  file.weight("v", {2, 3}).node({"MatMul", {"x", "v"}, {"value"}});
  file.node({"Sigmoid", {"h"}, {"s"}}).node({"Mul", {"h", "s"}, {"gate"}});
  file.node({"Mul", {"gate", "value"}, {"y"}});
  const KernelGraph graph = file.read();
  EXPECT_THAT(fused_into(graph), ElementsAre(-1, -1, 4, 4, -1));
  EXPECT_EQ(traffic_of(graph.nodes[4]), (Traffic{3 * 12, 5 * 12}));
  EXPECT_EQ(graph.nodes[4].forward[0].routine, Routine::kSwiGlu);
}

/// h / sqrt(mean(h^2) + e) * w: rows stay on chip.
TEST(FuseKernels, MakesOneKernelOfANorm) {
  OnnxFile file = file_with_hidden();
  file.weight("scale", {3}).scalar("two", 2).scalar("epsilon", 1e-5).integers("axes", {-1});
  file.node({"Pow", {"h", "two"}, {"square"}}).node({"ReduceMean", {"square", "axes"}, {"mean"}});
  file.node({"Add", {"mean", "epsilon"}, {"shifted"}}).node({"Sqrt", {"shifted"}, {"root"}});
  file.node({"Div", {"h", "root"}, {"unit"}}).node({"Mul", {"unit", "scale"}, {"y"}});
  const KernelGraph graph = file.read();
  EXPECT_THAT(fused_into(graph), ElementsAre(-1, 6, 6, 6, 6, 6, -1));
  const Traffic traffic = traffic_of(graph.nodes[6]);
  const std::int64_t axes = 2;  // int64
  EXPECT_EQ(traffic.forward, 2 * 12 + 3 + 2 + axes);
  EXPECT_EQ(graph.nodes[6].forward[0].routine, Routine::kRmsNorm);
}

/// 4 rows of 4 columns, whose halves are swapped as in rotary embeddings, after `first` has
/// computed "y" of "h".
KernelGraph read_rotary(void (*first)(OnnxFile&)) {
  OnnxFile file;
  file.input("x", {4, 2}).weight("w", {2, 4}).node({"MatMul", {"x", "w"}, {"h"}});
  first(file);
  file.input("cos", {4, 4}).input("sin", {4, 4}).integers("zero", {0}).integers("half", {2});
  file.integers("all", {4}).integers("columns", {1});
  file.node({"Slice", {"y", "zero", "half", "columns"}, {"left"}});
  file.node({"Slice", {"y", "half", "all", "columns"}, {"right"}});
  file.node({"Neg", {"right"}, {"turned"}});
  file.node({"Concat", {"turned", "left"}, {"swapped"}, {{"axis", std::int64_t{1}}}});
  file.node({"Mul", {"y", "cos"}, {"a"}}).node({"Mul", {"swapped", "sin"}, {"b"}});
  file.node({"Add", {"a", "b"}, {"z"}});
  return file.read();
}

/// The norm writes its rows before other threads read their halves.
TEST(FuseKernels, ARotaryEmbeddingIsAKernelAfterANorm) {
  const KernelGraph graph = read_rotary([](OnnxFile& file) {
    file.weight("scale", {4}).scalar("two", 2).integers("axes", {-1});
    file.node({"Pow", {"h", "two"}, {"square"}}).node({"ReduceMean", {"square", "axes"}, {"mean"}});
    file.node({"Sqrt", {"mean"}, {"root"}}).node({"Div", {"h", "root"}, {"unit"}});
    file.node({"Mul", {"unit", "scale"}, {"y"}});
  });
  EXPECT_THAT(fused_into(graph), ElementsAre(-1, 5, 5, 5, 5, -1, 12, 12, 12, 12, 12, 12, -1));
  EXPECT_EQ(graph.nodes[5].forward[0].routine, Routine::kRmsNorm);
}

/// Elements alone are computed again for each reader.
TEST(FuseKernels, ARotaryEmbeddingComputesElementsBeforeIt) {
  const KernelGraph graph = read_rotary([](OnnxFile& file) { file.node({"Relu", {"h"}, {"y"}}); });
  EXPECT_THAT(fused_into(graph), ElementsAre(-1, 8, 8, 8, 8, 8, 8, 8, -1));
}

/// The sum is read by the product, too, which the last sum depends on: one kernel for both sums
/// would wait for itself.
TEST(FuseKernels, NeverWaitsForItself) {
  OnnxFile file = file_with_hidden();
  file.weight("v", {3, 3}).node({"Relu", {"h"}, {"r"}}).node({"Add", {"h", "r"}, {"sum"}});
  file.node({"MatMul", {"sum", "v"}, {"p"}}).node({"Add", {"sum", "p"}, {"y"}});
  EXPECT_THAT(fused_into(file.read()), ElementsAre(-1, 2, -1, -1, -1));
}

TEST(FuseKernels, KeepsWhatTheModelReturns) {
  OnnxFile file = file_with_hidden();
  file.node({"Tanh", {"h"}, {"t"}}).node({"Neg", {"t"}, {"y"}}).output("t").output("y");
  EXPECT_THAT(fused_into(file.read()), ElementsAre(-1, -1, -1));
}

/// Two sequences of 3 heads, 8 tokens, 4 elements per head.
struct WrittenAttention {
  std::string mask = "";  ///< "": none; "stored": at byte 3 of "w.data"
  bool scores_are_read = false;
  std::string directory = {};

  KernelGraph read(bool fuses = true) const {
    OnnxFile file;
    file.weight("wq", {4, 4}).weight("wk", {4, 4}).weight("wv", {4, 4}).scalar("half", 0.5);
    file.input("x", {2, 3, 8, 4}).input("tokens", {8}, onnx::ElementType::kInt64);
    for (const char* name : {"q", "k", "v"})
      file.node({"MatMul", {"x", std::string("w") + name}, {name}});
    file.node({"Transpose", {"k"}, {"kt"}, {{"perm", std::vector<std::int64_t>{0, 1, 3, 2}}}});
    file.node({"Mul", {"q", "half"}, {"scaled"}}).node({"MatMul", {"scaled", "kt"}, {"scores"}});
    std::string last = "scores";
    if (mask == "stored") {
      file.external_mask("seen", {8, 8}, "w.data", 3).scalar("lowest", -1e9);
      file.node({"Where", {"seen", "scores", "lowest"}, {last = "masked"}});
    } else if (!mask.empty()) {
      file.integers("last", {-1}).integers("first", {0}).integers("zero", {0});
      file.node({"Unsqueeze", {"tokens", "last"}, {"rows"}});
      file.node({"Unsqueeze", {"tokens", "first"}, {"columns"}});
      file.node({"LessOrEqual", {mask == "causal" ? "columns" : "zero", "rows"}, {"seen"}})
          .scalar("lowest", -1e9);
      file.node({"Where", {"seen", "scores", "lowest"}, {last = "masked"}});
    }
    file.node({"Softmax", {last}, {"p"}}).node({"MatMul", {"p", "v"}, {"out"}});
    file.node(
        {"Transpose", {"out"}, {"rows_first"}, {{"perm", std::vector<std::int64_t>{0, 2, 1, 3}}}});
    file.integers("flat", {2, 8, 12}).node({"Reshape", {"rows_first", "flat"}, {"y"}});
    file.output("y");
    if (scores_are_read) file.output("scores");
    return file.read({.dtype = Dtype::kFp32, .directory = directory, .fuses_kernels = fuses});
  }
};

const KernelGraphNode& node_named(const KernelGraph& graph, const std::string& name) {
  for (const KernelGraphNode& node : graph.nodes)
    if (node.name == name) return node;
  ADD_FAILURE() << "missing node " << name;
  return graph.nodes[0];
}

/// Forward: two products of 2 * 3 * 8 * 8 scores with 4 elements, 2 FLOP each; backward: five.
TEST(FuseKernels, MakesOneKernelOfAttention) {
  const KernelGraph graph = WrittenAttention().read();
  const KernelGraphNode& attention = node_named(graph, "out");
  ASSERT_EQ(attention.forward.size(), 1U);
  const Kernel& kernel = attention.forward[0];
  EXPECT_EQ(kernel.kind, KernelKind::kAttention);
  EXPECT_THAT((std::vector{kernel.batch, kernel.m, kernel.n, kernel.k, kernel.value_size}),
              ElementsAre(6, 8, 8, 4, 4));
  EXPECT_FALSE(kernel.causal);
  EXPECT_EQ(kernel.flops, Flops(2.0 * 2 * 6 * 8 * 8 * 4));
  constexpr std::int64_t kTensor = 2 * 3 * 8 * 4;
  EXPECT_EQ(kernel.memory_traffic, Bytes(kFloat * 4 * kTensor));
  ASSERT_EQ(attention.backward.size(), 1U);
  EXPECT_EQ(attention.backward[0].flops, Flops(5.0 * 2 * 6 * 8 * 8 * 4));
  // x, q, k, v, the result, and one number per row of scores.
  EXPECT_EQ(saved_bytes(graph), Bytes(kFloat * (5 * kTensor + 6 * 8)));
  for (const char* name : {"kt", "scaled", "scores", "p", "y"}) {
    EXPECT_THAT(node_named(graph, name).forward, IsEmpty()) << name;
    EXPECT_THAT(node_named(graph, name).backward, IsEmpty()) << name;
  }
}

/// A mask that compares positions leaves half of the scores.
TEST(FuseKernels, RecognizesCausalMasks) {
  const KernelGraph graph = WrittenAttention{.mask = "causal", .scores_are_read = false}.read();
  const Kernel& kernel = node_named(graph, "out").forward.at(0);
  EXPECT_EQ(kernel.kind, KernelKind::kAttention);
  EXPECT_TRUE(kernel.causal);
  EXPECT_EQ(kernel.flops, Flops(2.0 * 6 * 8 * 8 * 4));
}

/// transformers compares positions with 0 for masks that hide nothing.
TEST(FuseKernels, ComparisonsWithOneNumberAreNotCausal) {
  const KernelGraph graph = WrittenAttention{.mask = "all", .scores_are_read = false}.read();
  EXPECT_EQ(node_named(graph, "out").forward.at(0).kind, KernelKind::kAttention);
  EXPECT_FALSE(node_named(graph, "out").forward.at(0).causal);
}

/// Beside the model, after 3 bytes of something else. Without the file it counts as causal.
TEST(FuseKernels, ReadsStoredMasks) {
  std::string pattern = testing::TempDir() + "onnx-XXXXXX";
  const std::string directory = ::mkdtemp(pattern.data());
  const auto is_causal = [&] {
    const WrittenAttention attention{
        .mask = "stored", .scores_are_read = false, .directory = directory};
    return node_named(attention.read(), "out").forward.at(0).causal;
  };
  EXPECT_TRUE(is_causal());
  write_file(directory + "/w.data", std::string(3 + 8 * 8, '\1'));
  EXPECT_FALSE(is_causal());
  std::string lower(3 + 8 * 8, '\0');
  for (std::size_t row = 0; row < 8; ++row)
    for (std::size_t column = 0; column <= row; ++column) lower[3 + 8 * row + column] = '\1';
  write_file(directory + "/w.data", lower);
  EXPECT_TRUE(is_causal());
  std::filesystem::remove_all(directory);
}

TEST(FuseKernels, LeavesScoresThatTheModelReturns) {
  const KernelGraph graph = WrittenAttention{.mask = "", .scores_are_read = true}.read();
  EXPECT_EQ(node_named(graph, "out").forward.at(0).kind, KernelKind::kGemm);
  EXPECT_EQ(node_named(graph, "scores").forward.at(0).kind, KernelKind::kGemm);
}

TEST(FuseKernels, OnlyOnRequest) {
  const KernelGraph graph =
      WrittenAttention{.mask = "causal", .scores_are_read = false}.read(false);
  for (const KernelGraphNode& node : graph.nodes) EXPECT_EQ(node.fused_into, -1) << node.name;
}

/// Random graphs of elements, rows and products.
OnnxFile random_graph(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::size_t count) { return random() % count; };
  OnnxFile file;
  file.input("x", {4, 4}).weight("w", {4, 4}).weight("b", {4});
  std::vector<std::string> tensors{"x"};
  for (int i = 0; i < 24; ++i) {
    const auto any = [&] {
      return tensors[tensors.size() - 1 - below(std::min<std::size_t>(5, tensors.size()))];
    };
    const std::string out = "t" + std::to_string(i);
    switch (below(7)) {
      case 0:
        file.node({"MatMul", {any(), "w"}, {out}});
        break;
      case 1:
        file.node({"MatMul", {any(), any()}, {out}});
        break;
      case 2:
        file.node({"Softmax", {any()}, {out}});
        break;
      case 3:
        file.node({"Add", {any(), "b"}, {out}});
        break;
      case 4:
        file.node({"Transpose", {any()}, {out}});
        break;
      case 5:
        file.node({"Tanh", {any()}, {out}});
        break;
      default:
        file.node({"Mul", {any(), any()}, {out}});
    }
    tensors.push_back(out);
  }
  return file.output(tensors.back()), file;
}

/// The nodes of a fused kernel are read by each other only, but for the last; nothing takes more
/// time or memory than before.
TEST(FuseKernels, KeepsRandomGraphsInOrder) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    const OnnxFile file = random_graph(seed);
    const KernelGraph fused = file.read();
    const KernelGraph plain = file.read({.dtype = Dtype::kFp32, .fuses_kernels = false});
    ASSERT_EQ(fused.nodes.size(), plain.nodes.size());
    EXPECT_EQ(fused.edges, plain.edges);
    const auto last = [&](std::int32_t node) {
      const std::int32_t into = fused.nodes[static_cast<std::size_t>(node)].fused_into;
      return into < 0 ? node : into;
    };
    Bytes traffic, before;
    std::size_t kernels = 0, kernels_before = 0;
    for (std::size_t n = 0; n < fused.nodes.size(); ++n) {
      const KernelGraphNode& node = fused.nodes[n];
      if (node.fused_into >= 0) {
        EXPECT_GT(node.fused_into, static_cast<std::int32_t>(n));
        EXPECT_EQ(fused.nodes[static_cast<std::size_t>(node.fused_into)].fused_into, -1);
        EXPECT_TRUE(node.forward.empty() && node.backward.empty());
      }
      EXPECT_EQ(node.parameters, plain.nodes[n].parameters);
      for (const Kernel& kernel : node.forward) traffic += kernel.memory_traffic;
      for (const Kernel& kernel : plain.nodes[n].forward) before += kernel.memory_traffic;
      kernels += node.forward.size(), kernels_before += plain.nodes[n].forward.size();
    }
    for (const KernelGraphEdge& edge : fused.edges)
      if (fused.nodes[static_cast<std::size_t>(edge.source)].fused_into >= 0) {
        EXPECT_EQ(last(edge.source), last(edge.target));
      }
    EXPECT_LE(traffic, before);
    EXPECT_LE(kernels, kernels_before);
    EXPECT_LE(saved_bytes(fused), saved_bytes(plain) + Bytes(kFloat * 4 * 24));
  }
}

}  // namespace
}  // namespace meshwright
