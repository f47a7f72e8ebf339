/// Weights of HuggingFace checkpoints: layouts by hand, files read and written.
#include "executor/checkpoint/external_weights.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <numeric>

#include "core/formats/file.hpp"
#include "models/families/weight_names.hpp"
#include "tests/complaints.hpp"
#include "tests/executor/runs/tiny_training.hpp"

namespace meshwright {
namespace {

ModelGraph model_of(std::string_view config) {
  return model_from_config({.name = "tiny", .where = "tiny.json", .text = std::string(config)});
}

/// Every element of every parameter has another value.
Checkpoint numbered(const ModelGraph& model) {
  Checkpoint checkpoint;
  float next = 0;
  for (const Tensor& tensor : model.tensors)
    if (const auto* parameter = std::get_if<ParameterTensor>(&tensor.shape)) {
      const std::int64_t count = std::accumulate(parameter->shape.begin(), parameter->shape.end(),
                                                 std::int64_t{1}, std::multiplies<>());
      for (std::int64_t i = 0; i < count; ++i)
        checkpoint.parameters[tensor.name].weights.push_back(next++);
    }
  return checkpoint;
}

class WeightFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(std::string_view name) const { return (folder_ / name).string(); }
  void write(std::string_view name, const TensorFile& file) const {
    write_file(path(name), to_safetensors(file));
  }
  std::filesystem::path folder_;
};

const NamedTensor& tensor_named(const TensorFile& file, std::string_view name) {
  return *std::ranges::find(file.tensors, name, &NamedTensor::name);
}

// H = 2, one head of 2, one key head: the fused matrix is [2, 6] with rows (0..5) and (6..11)
// counted from the first element f. Keys are columns 2 and 3; torch stores them as [out, in].
TEST_F(WeightFiles, TransposesAndSplitsMatrices) {
  const ModelGraph model = model_of(
      R"({"model_type": "llama", "hidden_size": 2, "num_hidden_layers": 1, "intermediate_size": 3,
          "num_attention_heads": 1, "vocab_size": 4, "max_position_embeddings": 8})");
  const Checkpoint checkpoint = numbered(model);
  const std::string text = to_external_file(checkpoint, model, *weight_layout(model));
  const TensorFile file = tensors_from_safetensors(text, "file");
  const float f =
      checkpoint.parameters.at("layer0.attention.query_key_value.weight").weights.front();
  const NamedTensor& keys = tensor_named(file, "model.layers.0.self_attn.k_proj.weight");
  EXPECT_EQ(keys.shape, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(keys.values, (std::vector<float>{f + 2, f + 8, f + 3, f + 9}));
  EXPECT_EQ(tensor_named(file, "model.embed_tokens.weight").shape,
            (std::vector<std::int64_t>{4, 2}));
}

// Two heads of 2 in GPT-NeoX: rows of the file are q0 k0 v0 q1 k1 v1, two each, so the keys of head
// 1 are rows 8 and 9, and columns 4 + 2 and 4 + 3 of ours.
TEST_F(WeightFiles, SortsFusedHeads) {
  const ModelGraph model = model_of(
      R"({"model_type": "gpt_neox", "hidden_size": 4, "num_hidden_layers": 1,
          "intermediate_size": 3, "num_attention_heads": 2, "vocab_size": 4, "rotary_pct": 1,
          "max_position_embeddings": 8})");
  const Checkpoint checkpoint = numbered(model);
  const TensorFile file =
      tensors_from_safetensors(to_external_file(checkpoint, model, *weight_layout(model)), "file");
  const float f = checkpoint.parameters.at("layer0.attention.query_key_value.bias").weights[0];
  const NamedTensor& bias = tensor_named(file, "gpt_neox.layers.0.attention.query_key_value.bias");
  EXPECT_EQ(bias.values, (std::vector<float>{f, f + 1, f + 4, f + 5, f + 8, f + 9, f + 2, f + 3,
                                             f + 6, f + 7, f + 10, f + 11}));
}

TEST_F(WeightFiles, ReadsWhatItWrites) {
  for (const std::string_view config : {kGpt, kLlama, kMixtral, kGptOss, kDeepSeek}) {
    const ModelGraph model = model_of(config);
    const Checkpoint checkpoint = numbered(model);
    const WeightLayout layout = *weight_layout(model);
    write_file(path("model.safetensors"), to_external_file(checkpoint, model, layout));
    const ExternalWeights read(folder_.string(), model, layout);
    EXPECT_EQ(to_checkpoint(read, model).parameters, checkpoint.parameters) << model.family;
    EXPECT_THAT(read.unused(), testing::IsEmpty()) << model.family;
  }
}

// Files without the prefix of the base model, in shards, beside a tensor of another head.
TEST_F(WeightFiles, ReadsShardsAndShortNames) {
  const ModelGraph model = model_of(kGpt);
  const WeightLayout layout = *weight_layout(model);
  TensorFile all = tensors_from_safetensors(to_external_file(numbered(model), model, layout), "x");
  TensorFile first, second;
  for (NamedTensor& tensor : all.tensors) {
    tensor.name = tensor.name.substr(std::string_view("transformer.").size());
    TensorFile& shard = first.tensors.size() < 5 ? first : second;
    shard.tensors.push_back(tensor);
  }
  second.tensors.push_back({"score.weight", {1}, {0}});
  write("a.safetensors", first);
  write("b.safetensors", second);
  write_file(path("model.safetensors.index.json"),
             R"({"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}})");
  const ExternalWeights read(folder_.string(), model, layout);
  EXPECT_EQ(to_checkpoint(read, model).parameters, numbered(model).parameters);
  EXPECT_EQ(read.unused(), std::vector<std::string>{"score.weight"});
}

TEST_F(WeightFiles, RefusesMissingTensorsAndOtherShapes) {
  const ModelGraph model = model_of(kLlama);
  const WeightLayout layout = *weight_layout(model);
  TensorFile file = tensors_from_safetensors(to_external_file(numbered(model), model, layout), "x");
  file.tensors.pop_back();  // model.norm.weight, by name the last one
  file.tensors.front().shape = {file.tensors.front().shape[0] * 32};
  write("model.safetensors", file);
  const std::string complaint =
      complaints_of([&] { ExternalWeights(path("model.safetensors"), model, layout); });
  EXPECT_THAT(complaint, testing::HasSubstr("missing tensor 'model.norm.weight'"));
  EXPECT_THAT(complaint, testing::HasSubstr("#/lm_head.weight: shape mismatch: expected [200, 32], "
                                            "got [6400]"));
  EXPECT_THAT(complaints_of([&] { ExternalWeights(path("absent"), model, layout); }),
              testing::HasSubstr("No such file"));
}

}  // namespace
}  // namespace meshwright
