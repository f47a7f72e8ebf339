// Files that are broken, or made to exhaust memory or time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/complaints.hpp"
#include "tests/models/mutated_text.hpp"
#include "tests/models/onnx/onnx_file.hpp"

namespace meshwright {
namespace {

using ::testing::HasSubstr;
using Ints = std::vector<std::int64_t>;

std::string complaint(const OnnxFile& file) {
  return complaints_of([&] { file.read(); });
}
std::string complaint(const std::string& bytes) {
  return complaints_of([&] { read_onnx({.name = "m", .where = "m.onnx", .text = bytes}); });
}

TEST(OnnxFile, IsRefusedWithTheNodeOfTheProblem) {
  EXPECT_THAT(complaint(OnnxFile()
                            .input("x", {2})
                            .node({"Add", {"x", "b"}, {"a"}, {}, "first"})
                            .node({"Relu", {"a"}, {"b"}, {}, "second"})),
              HasSubstr("m.onnx: node 'first' (Add): it depends on a cycle"));
  EXPECT_THAT(complaint(OnnxFile()
                            .input("x", {2})
                            .node({"Relu", {"x"}, {"a"}, {}, "n"})
                            .node({"Relu", {"a"}, {"b"}, {}, "n"})),
              HasSubstr("node 'n' (Relu): nodes 0 and 1 have the same name"));
  EXPECT_THAT(complaint(OnnxFile()
                            .input("x", {2})
                            .node({"Relu", {"x"}, {"a"}, {}, "n"})
                            .node({"Abs", {"x"}, {"a"}, {}, "m"})),
              HasSubstr("node 'm' (Abs): its output 'a' is also an input, an initializer or an"));
  EXPECT_THAT(complaint(OnnxFile().input("x", {2}).node({"Add", {"x", "y"}, {"z"}})),
              HasSubstr("node 'z' (Add): its input 'y' does not exist"));
  EXPECT_THAT(complaint(OnnxFile().weight("w", {2}).weight("w", {2})),
              HasSubstr("two initializers with the name 'w'"));
  EXPECT_THAT(complaint(OnnxFile().input("x", {2}).control_flow("Loop", "y")),
              HasSubstr("node 'y' (Loop): control flow is not supported"));
  EXPECT_THAT(complaint(OnnxFile().input("x", {2}).node({"Relu", {}, {"y"}})),
              HasSubstr("node 'y' (Relu): missing input 0"));
  EXPECT_THAT(complaint(OnnxFile().input("x", {2}).node({"Relu", {"x"}, {}, {}, "n"})),
              HasSubstr("node 'n' (Relu): a node without outputs"));
  EXPECT_THAT(complaint(OnnxFile().weight("w", {2, 2})),
              HasSubstr("m.onnx: no operator depends on an input"));
}

TEST(OnnxFile, IsRefusedIfItIsNotOnnx) {
  EXPECT_THAT(complaint(""), HasSubstr("m.onnx: the file has no ONNX graph"));
  EXPECT_THAT(complaint("{\"nodes\": []}"), HasSubstr("invalid protobuf message"));
  EXPECT_FALSE(looks_like_onnx("{\"nodes\": []}"));
  EXPECT_TRUE(looks_like_onnx(OnnxFile().input("x", {2}).bytes()));
}

/// A length of 2^30 bytes in a file of a few.
TEST(OnnxFile, IsRefusedIfALengthExceedsIt) {
  const std::string huge_graph("\x3a\x80\x80\x80\x80\x04", 6);
  EXPECT_THAT(complaint(huge_graph), HasSubstr("invalid protobuf message"));
}

TEST(OnnxFile, IsRefusedIfShapesAreHuge) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 30;
  EXPECT_THAT(complaint(OnnxFile().weight("w", {kHuge, kHuge})),
              HasSubstr("tensor 'w' has the shape [1073741824, 1073741824]"));
  EXPECT_THAT(complaint(OnnxFile().weight("w", Ints(17, 1))), HasSubstr("has 17 dimensions"));
  EXPECT_THAT(complaint(OnnxFile().input("x", {kHuge, kHuge}).node({"Relu", {"x"}, {"y"}})),
              HasSubstr("m.onnx: input 'x': its shape is [1073741824, 1073741824]"));
  EXPECT_THAT(
      complaint(
          OnnxFile().input("x", {kHuge, 1}).input("y", {kHuge}).node({"Add", {"x", "y"}, {"z"}})),
      HasSubstr("node 'z' (Add): its output has the shape [1073741824, 1073741824]"));
  EXPECT_THAT(complaint(OnnxFile()
                            .input("x", {kHuge, 1})
                            .integers("r", {kHuge, 1})
                            .node({"Tile", {"x", "r"}, {"z"}})),
              HasSubstr("too many elements"));
}

/// Every step doubles the number of elements: refused when one tensor is too large, not by memory.
TEST(OnnxFile, IsRefusedIfItDoublesATensorAgainAndAgain) {
  OnnxFile file;
  file.input("t0", {2});
  for (int i = 0; i < 60; ++i) {
    const std::string x = "t" + std::to_string(i), y = "t" + std::to_string(i + 1);
    file.node({"Concat", {x, x}, {y}, {{"axis", std::int64_t{0}}}});
  }
  EXPECT_THAT(complaint(file), HasSubstr("too many elements"));
}

/// 300,000 nodes in a chain are read, in time and memory proportional to the file.
TEST(OnnxFile, IsReadIfItIsLong) {
  constexpr int kNodes = 300'000;
  OnnxFile file;
  file.input("t0", {2});
  for (int i = 0; i < kNodes; ++i)
    file.node({"Neg", {"t" + std::to_string(i)}, {"t" + std::to_string(i + 1)}});
  EXPECT_EQ(file.read().nodes.size(), kNodes);
}

TEST(OnnxFile, IsRefusedIfItHasTooManyNodes) {
  std::string node;
  protozero::pbf_writer(node).add_string(onnx::node::kOpType, "");
  std::string graph;
  protozero::pbf_writer writer(graph);
  for (std::size_t i = 0; i <= onnx::kMostNodes; ++i) writer.add_message(onnx::graph::kNode, node);
  std::string bytes;
  protozero::pbf_writer(bytes).add_message(onnx::model::kGraph, graph);
  EXPECT_THAT(complaint(bytes), HasSubstr("more than 1000000 nodes"));
}

/// Bytes changed at random: read, or refused with an InputError; any other exception fails.
TEST(OnnxFile, IsReadOrRefusedWhateverItsBytesAre) {
  OnnxFile file;
  file.input("x", {2, 8, 8, 8})
      .weight("w", {8, 8, 3, 3})
      .weight("v", {8, 4})
      .integers("s", {2, -1});
  file.node({"Conv", {"x", "w"}, {"c"}, {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 2}}}});
  file.node({"Relu", {"c"}, {"r"}}).node({"MaxPool", {"r"}, {"p"}, {{"kernel_shape", Ints{2, 2}}}});
  file.node({"Reshape", {"p", "s"}, {"f"}}).node({"Softmax", {"f"}, {"m"}});
  file.node({"Transpose", {"p"}, {"t"}, {{"perm", Ints{0, 2, 3, 1}}}});
  file.node({"MatMul", {"t", "v"}, {"y"}});
  const std::string original = file.bytes();
  std::mt19937 random(20261126);
  int accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    if (complaint(mutated(original, random)).empty()) ++accepted;
  }
  EXPECT_GT(accepted, 100);
  EXPECT_LT(accepted, 19'900);
}

}  // namespace
}  // namespace meshwright
