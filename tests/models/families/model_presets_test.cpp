#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/formats/file.hpp"
#include "models/load/load.hpp"
#include "tests/complaints.hpp"

namespace meshwright {
namespace {

TEST(ModelPresets, AllBuildSoundGraphs) {
  const std::vector<std::string> names = model_preset_names();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const ModelGraph model = model_from_config(find_model(name));  // finish() checks it
    EXPECT_EQ(model.name, name);
    EXPECT_EQ(model.layers.front().kind, LayerKind::kEmbedding);
    EXPECT_EQ(model.layers.back().kind, LayerKind::kHead);
  }
}

TEST(ModelPresets, IncludeTheOnesThatUsersAreTold) {
  EXPECT_THAT(
      model_preset_names(),
      testing::IsSupersetOf(
          {"bert-base",      "bert-large",     "deepseek-v3",   "gpt-oss-20b",    "gpt2",
           "gpt2-xl",        "gpt3-175b",      "grok-1",        "llama-2-7b",     "llama-3.1-70b",
           "llama-3.1-405b", "megatron-22b",   "megatron-145b", "megatron-530b",  "megatron-1t",
           "mixtral-8x7b",   "mixtral-8x22b",  "mlp",           "nemotron-4-15b", "nemotron-4-340b",
           "qwen3-30b-a3b",  "qwen3-235b-a22b"}));
}

// Equal layers share a class: embedding, block, head; DeepSeek-V3 has three dense blocks and 58
// with experts; gpt-oss alternates windows; BERT and the toy are plain.
TEST(ModelPresets, HaveFewLayerClasses) {
  const auto classes = [](const char* preset) {
    return layer_class_count(model_from_config(find_model(preset)));
  };
  EXPECT_EQ(classes("gpt3-175b"), 3);
  EXPECT_EQ(classes("bert-base"), 3);
  EXPECT_EQ(classes("mlp"), 3);
  EXPECT_EQ(classes("deepseek-v3"), 4);
  EXPECT_EQ(classes("gpt-oss-20b"), 4);
}

TEST(ModelPresets, KnowTheirTraits) {
  EXPECT_EQ(traits_of(model_from_config(find_model("mixtral-8x7b"))),
            (ModelTraits{.blocks = 32,
                         .hidden = 4096,
                         .vocabulary = 32000,
                         .heads = 32,
                         .key_value_heads = 8,
                         .experts = 8,
                         .experts_per_token = 2}));
}

TEST(FindModel, NamesTheNearestPresetAndHowToPassAFile) {
  EXPECT_EQ(complaints_of([] { find_model("gpt3-175"); }),
            "error: gpt3-175: unknown model 'gpt3-175'\n"
            "  hint: did you mean 'gpt3-175b', 'gpt2-xl'? (for a HuggingFace config.json, give a "
            "path such as ./config.json)\n");
}

TEST(FindModel, SaysWhichFileIsMissing) {
  EXPECT_EQ(complaints_of([] { find_model("no/such.json"); }),
            "error: no/such.json: cannot open file: No such file or directory\n");
}

TEST(FindModel, TakesTheNameFromTheFileOrItsFolder) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "meshwright-find-model" / "tiny-llama";
  std::filesystem::create_directories(folder);
  for (const char* file : {"config.json", "small.config.json", "plain.json"})
    write_file((folder / file).string(), R"({"model_type": "llama"})");
  EXPECT_EQ(find_model((folder / "config.json").string()).name, "tiny-llama");
  EXPECT_EQ(find_model((folder / "small.config.json").string()).name, "small");
  const NamedText plain = find_model((folder / "plain.json").string());
  EXPECT_EQ(plain.name, "plain");
  EXPECT_EQ(plain.where, (folder / "plain.json").string());
  EXPECT_EQ(plain.text, R"({"model_type": "llama"})");
  std::filesystem::remove_all(folder.parent_path());
}

}  // namespace
}  // namespace meshwright
