#include "core/model/model_graph.hpp"

#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "tests/core/tiny_models.hpp"

namespace meshwright {
namespace {

using namespace testing_models;

// Blocks 12 H^2 + 13 H = 49,984; words 512 * 64, positions 128 * 64, head norm 128 and 64 * 512.
TEST(ModelGraph, CountsParametersExactly) {
  EXPECT_EQ(parameter_count(gpt({.blocks = 3})), 3 * 49'984 + 640 * 64 + 128 + 32'768);
  EXPECT_EQ(parameter_count(gpt({.blocks = 3, .tied = true})), 3 * 49'984 + 640 * 64 + 128);
}

TEST(ModelGraph, AddsUpOverLayers) {
  const ModelGraph model = gpt({.blocks = 3, .tied = true});
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < model.layers.size(); ++i) sum += parameter_count(model, LayerId(i));
  EXPECT_EQ(sum, parameter_count(model));
}

// Half of the 65,536 expert parameters per block are used per token.
TEST(ModelGraph, CountsActiveParametersOfExperts) {
  const ModelGraph model = mixture(2);
  EXPECT_EQ(parameter_count(model), 512 * 64 + 2 * (256 + 65'536));
  EXPECT_EQ(active_parameter_count(model), 512 * 64 + 2 * (256 + 32'768));
}

TEST(ModelGraph, NumbersEqualLayersAlike) {
  const ModelGraph model = gpt({.blocks = 5});
  EXPECT_EQ(layer_class_count(model), 3);
  for (std::size_t i = 1; i <= 5; ++i) EXPECT_EQ(model.layers[i].layer_class, 1);
  EXPECT_EQ(model.layers[6].layer_class, 2);
}

TEST(ModelGraph, TellsLayersOfOtherWidthsApart) {
  ModelGraphBuilder builder("m", "f");
  TensorId x = builder.add_activation("x", {.width = 8});
  for (const std::int64_t width : {8, 16, 8, 16}) {
    builder.begin_layer(LayerKind::kBlock);
    const TensorId up = builder.add_activation("up", {.width = width});
    const TensorId down = builder.add_activation("down", {.width = 8});
    builder.add({"up", Linear{8, width}, {x}, {up}, {}, {x}});
    builder.add({"down", Linear{width, 8}, {up}, {down}, {}, {up}});
    x = down;
    builder.end_layer(8);
  }
  const ModelGraph model = builder.finish(0, false);
  EXPECT_EQ(layer_class_count(model), 2);
  EXPECT_EQ(model.layers[2].layer_class, 0);
  EXPECT_EQ(model.layers[3].layer_class, 1);
}

TEST(ModelGraph, KnowsItsTraits) {
  const ModelTraits dense = traits_of(gpt({.blocks = 3}));
  EXPECT_EQ(dense, (ModelTraits{.blocks = 3,
                                .hidden = 64,
                                .vocabulary = 512,
                                .heads = 4,
                                .key_value_heads = 4,
                                .experts = {},
                                .experts_per_token = {}}));
  EXPECT_EQ(traits_of(mixture(2)).experts, 4);
  EXPECT_EQ(traits_of(mixture(2)).experts_per_token, 2);
}

TEST(ModelGraph, FillsInTheRowsOfRoutedTensors) {
  const ModelGraph model = mixture(1);
  int routed = 0;
  for (const Tensor& tensor : model.tensors)
    if (const auto* a = std::get_if<ActivationTensor>(&tensor.shape)) {
      EXPECT_EQ(a->rows_per_token, a->routed ? 2 : 1) << tensor.name;
      routed += a->routed ? 1 : 0;
    }
  EXPECT_EQ(routed, 4);
}

/// A block of these operators on activations 0 and 1, 8 and `width` wide.
ModelGraph block_of(const std::vector<Operator>& operators, std::int64_t width = 8) {
  ModelGraphBuilder builder("m", "f");
  builder.add_activation("a", {.width = 8});
  builder.add_activation("b", {.width = width});
  builder.begin_layer(LayerKind::kBlock);
  for (const Operator& op : operators) builder.add(op);
  builder.end_layer(8);
  return builder.finish(0, false);
}

TEST(ModelGraphBuilder, RefusesAReaderBeforeItsWriter) {
  EXPECT_THROW(block_of({{"second", Norm{.width = 8}, {TensorId(1)}, {TensorId(0)}, {}, {}},
                         {"first", Norm{.width = 8}, {}, {TensorId(1)}, {}, {}}}),
               InternalError);
}

TEST(ModelGraphBuilder, RefusesACircle) {
  EXPECT_THROW(block_of({{"forth", Norm{.width = 8}, {TensorId(1)}, {TensorId(0)}, {}, {}},
                         {"back", Norm{.width = 8}, {TensorId(0)}, {TensorId(1)}, {}, {}}}),
               InternalError);
}

TEST(ModelGraphBuilder, RefusesWidthsThatDisagree) {
  EXPECT_THROW(block_of({{"linear", Linear{8, 8}, {TensorId(0)}, {TensorId(1)}, {}, {}}}, 9),
               InternalError);
}

TEST(ModelGraphBuilder, RefusesTwoWritersAndForeignIds) {
  const auto build = [](const std::vector<TensorId>& outputs) {
    return block_of({{"one", Norm{.width = 8}, {}, outputs, {}, {}},
                     {"two", Norm{.width = 8}, {}, outputs, {}, {}}});
  };
  EXPECT_THROW(build({TensorId(0)}), InternalError);
  EXPECT_THROW(build({TensorId(7)}), InternalError);
  EXPECT_NO_THROW(build({}));
}

}  // namespace
}  // namespace meshwright
