#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/onnx/kernel_graph_reader.hpp"
#include "tests/complaints.hpp"
#include "tests/models/onnx/onnx_file.hpp"

namespace meshwright {
namespace {

using onnx::Dimensions;
using ::testing::HasSubstr;
using Ints = std::vector<std::int64_t>;

const OnnxOptions kFp32{.dimensions = {}, .dtype = Dtype::kFp32};

/// The shape of tensor `name`.
Dimensions shape_of(const OnnxFile& file, const std::string& name,
                    const OnnxOptions& options = kFp32) {
  const onnx::Graph graph = onnx::parse_onnx(file.bytes(), "m.onnx");
  for (const onnx::GraphTensor& tensor : onnx::read_kernels(graph, "m.onnx", options).tensors)
    if (tensor.name == name && tensor.dims) return *tensor.dims;
  return {-1};
}

/// The shape of the output of one node, whose first input is `x`.
Dimensions shape_after(const Dimensions& x, OnnxNodeText node,
                       const std::vector<std::pair<std::string, Ints>>& vectors = {}) {
  OnnxFile file;
  file.input("x", {x.begin(), x.end()});
  node.inputs.insert(node.inputs.begin(), "x");
  for (const auto& [name, values] : vectors) {
    file.integers(name, values);
    node.inputs.push_back(name);
  }
  node.outputs = {"y"};
  return shape_of(file.node(node), "y");
}

TEST(OnnxShapes, OfViewsKeepTheElements) {
  EXPECT_EQ(shape_after({2, 3, 4}, {"Reshape", {}, {}}, {{"s", {0, -1}}}), (Dimensions{2, 12}));
  EXPECT_EQ(shape_after({2, 3, 4}, {"Flatten", {}, {}, {{"axis", std::int64_t{2}}}}),
            (Dimensions{6, 4}));
  EXPECT_EQ(shape_after({2, 1, 4, 1}, {"Squeeze", {}, {}}, {{"a", {-1}}}), (Dimensions{2, 1, 4}));
  EXPECT_EQ(shape_after({2, 1, 4, 1}, {"Squeeze", {}, {}}), (Dimensions{2, 4}));
  EXPECT_EQ(shape_after({2, 3}, {"Unsqueeze", {}, {}}, {{"a", {0, -1}}}), (Dimensions{1, 2, 3, 1}));
  EXPECT_EQ(shape_after({2, 3, 4}, {"Transpose", {}, {}, {{"perm", Ints{1, 2, 0}}}}),
            (Dimensions{3, 4, 2}));
  EXPECT_EQ(shape_after({2, 3, 4}, {"Transpose", {}, {}}), (Dimensions{4, 3, 2}));
}

/// [1::2] of 5 has 2 elements, [-1:-6:-1] all 5, [3:2] none.
TEST(OnnxShapes, OfCopies) {
  const auto slice = [](const Ints& start, const Ints& end, const Ints& axis, const Ints& step) {
    return shape_after({5, 7}, {"Slice", {}, {}},
                       {{"start", start}, {"end", end}, {"axis", axis}, {"step", step}});
  };
  constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(slice({1}, {kEnd}, {0}, {2}), (Dimensions{2, 7}));
  EXPECT_EQ(slice({-1}, {-6}, {0}, {-1}), (Dimensions{5, 7}));
  EXPECT_EQ(slice({3, 0}, {2, -2}, {0, 1}, {1, 1}), (Dimensions{0, 5}));
  EXPECT_EQ(shape_after({4, 5}, {"Gather", {}, {}, {{"axis", std::int64_t{1}}}}, {{"i", {3, 0}}}),
            (Dimensions{4, 2}));
  EXPECT_EQ(shape_after({3, 1}, {"Expand", {}, {}}, {{"s", {2, 1, 6}}}), (Dimensions{2, 3, 6}));
  EXPECT_EQ(shape_after({3, 2}, {"Tile", {}, {}}, {{"r", {2, 5}}}), (Dimensions{6, 10}));
  EXPECT_EQ(shape_after({3, 2}, {"Pad", {}, {}}, {{"p", {1, 0, 2, 4}}}), (Dimensions{6, 6}));
  EXPECT_EQ(shape_after({1, 8, 2, 3}, {"DepthToSpace", {}, {}, {{"blocksize", std::int64_t{2}}}}),
            (Dimensions{1, 2, 4, 6}));
}

TEST(OnnxShapes, OfConcatenationAndSplitsWithoutSizes) {
  OnnxFile file;
  file.input("x", {2, 3}).input("y", {2, 4});
  file.node({"Concat", {"x", "y"}, {"xy"}, {{"axis", std::int64_t{-1}}}});
  file.node({"Split", {"xy"}, {"a", "b", "c"}, {{"axis", std::int64_t{1}}}});
  EXPECT_EQ(shape_of(file, "xy"), (Dimensions{2, 7}));
  EXPECT_EQ(shape_of(file, "b"), (Dimensions{2, 3}));  // 3 + 3 + 1
  EXPECT_EQ(shape_of(file, "c"), (Dimensions{2, 1}));
}

/// 7 wide, kernel 3, stride 2: windows at 0, 2, 4 without padding; 1 of padding on both sides gives
/// 1 + (9 - 3) / 2 = 4; dilation 2 reaches 5: 1 + (7 - 5) / 2 = 2.
TEST(OnnxShapes, OfWindows) {
  const auto pooled = [](std::vector<std::pair<std::string, OnnxAttributeValue>> attributes,
                         std::int64_t width) {
    attributes.push_back({"kernel_shape", Ints{3}});
    attributes.push_back({"strides", Ints{2}});
    return shape_after({1, 1, width}, {"MaxPool", {}, {}, attributes}).back();
  };
  EXPECT_EQ(pooled({}, 7), 3);
  EXPECT_EQ(pooled({{"pads", Ints{1, 1}}}, 7), 4);
  EXPECT_EQ(pooled({{"dilations", Ints{2}}}, 7), 2);
  EXPECT_EQ(pooled({}, 8), 3);
  EXPECT_EQ(pooled({{"ceil_mode", std::int64_t{1}}}, 8), 4);
  // Padded 8 wide: windows at -1, 1, 3, 5; rounding up would add one at 7, beyond input and
  // padding.
  EXPECT_EQ(pooled({{"ceil_mode", std::int64_t{1}}, {"pads", Ints{1, 0}}}, 7), 4);
  EXPECT_EQ(pooled({{"auto_pad", "SAME_UPPER"}}, 7), 4);
}

/// Stride 2, kernel 3, padding 1 and output padding 1: 2 (4 - 1) + 1 + 3 - 2 = 8.
TEST(OnnxShapes, OfTransposedConvolutions) {
  OnnxFile file;
  file.input("x", {1, 6, 4}).weight("w", {6, 5, 3});
  file.node({"ConvTranspose",
             {"x", "w"},
             {"y"},
             {{"strides", Ints{2}}, {"pads", Ints{1, 1}}, {"output_padding", Ints{1}}}});
  EXPECT_EQ(shape_of(file, "y"), (Dimensions{1, 5, 8}));
}

TEST(OnnxShapes, OfReductions) {
  const auto reduced = [](const Ints& axes, std::int64_t keeps) {
    return shape_after({2, 3, 4}, {"ReduceMean", {}, {}, {{"keepdims", keeps}}}, {{"a", axes}});
  };
  EXPECT_EQ(reduced({1}, 1), (Dimensions{2, 1, 4}));
  EXPECT_EQ(reduced({-1, 0}, 0), (Dimensions{3}));
  EXPECT_EQ(shape_after({2, 3}, {"ReduceSum", {}, {}}), (Dimensions{1, 1}));
  EXPECT_EQ(
      shape_after({2, 3},
                  {"ArgMax", {}, {}, {{"axis", std::int64_t{1}}, {"keepdims", std::int64_t{0}}}}),
      (Dimensions{2}));
}

/// [x.shape[0], x.shape[1] * x.shape[2] / 2, -1] from shape operators, as exporters write it.
TEST(OnnxShapes, AreComputedFromShapes) {
  OnnxFile file;
  file.input("x", {"batch", 6, 4});
  file.integers("zero", {0}).integers("one", {1}).integers("two", {2}).integers("open", {-1});
  file.node({"Shape", {"x"}, {"s"}});
  file.node({"Gather", {"s", "zero"}, {"n"}});
  file.node({"Slice", {"s", "one", "two"}, {"c"}});
  file.node({"Gather", {"s", "two"}, {"w"}});
  file.node({"Mul", {"c", "w"}, {"cw"}});
  file.node({"Div", {"cw", "two"}, {"half"}});
  file.node({"Concat", {"n", "half", "open"}, {"t"}, {{"axis", std::int64_t{0}}}});
  file.node({"Reshape", {"x", "t"}, {"y"}});
  OnnxOptions options = kFp32;
  options.dimensions = {{"batch", 5}};
  EXPECT_EQ(shape_of(file, "y", options), (Dimensions{5, 12, 2}));
  const KernelGraph graph = file.read(options);
  ASSERT_EQ(graph.nodes.size(), 1U);  // what computes shapes is left out
  EXPECT_EQ(graph.nodes[0].operation, "Reshape");
}

TEST(OnnxShapes, OfSymbolicDimensionsNeedValues) {
  OnnxFile file;
  file.input("x", {"batch", "", 4}).input("y", {"batch", "length"});
  file.node({"Relu", {"x"}, {"z"}});
  const auto diagnostics = diagnostics_of([&] { file.read(); });
  ASSERT_EQ(diagnostics.size(), 3U);
  EXPECT_EQ(diagnostics[0], (Diagnostic{"m.onnx", "dimension 'batch' has no value",
                                        "set it, such as with --dim batch=8"}));
  EXPECT_EQ(diagnostics[1].what, "dimension 'x:1' has no value");
  EXPECT_EQ(diagnostics[2].what, "dimension 'length' has no value");
  OnnxOptions options = kFp32;
  options.dimensions = {{"batch", 2}, {"x:1", 3}, {"length", 1}};
  EXPECT_EQ(shape_of(file, "z", options), (Dimensions{2, 3, 4}));
}

TEST(OnnxShapes, ThatDependOnDataAreRefused) {
  OnnxFile file;
  file.input("x", {6}).input("s", {2}, onnx::ElementType::kInt64);
  file.node({"Reshape", {"x", "s"}, {"y"}, {}, "view"});
  const auto diagnostics = diagnostics_of([&] { file.read(); });
  ASSERT_EQ(diagnostics.size(), 1U);
  EXPECT_EQ(diagnostics[0].where, "m.onnx: node 'view' (Reshape)");
  EXPECT_EQ(diagnostics[0].what, "the shape depends on the data of 's'");
}

TEST(OnnxShapes, ThatDoNotFitAreNamed) {
  OnnxFile file;
  file.input("x", {2, 3}).input("y", {2, 4});
  file.node({"Add", {"x", "y"}, {"z"}, {}, "sum"});
  EXPECT_THAT(
      complaints_of([&] { file.read(); }),
      HasSubstr("m.onnx: node 'sum' (Add): inputs of the shapes [2, 3] and [2, 4] cannot be "
                "broadcast"));
}

}  // namespace
}  // namespace meshwright
