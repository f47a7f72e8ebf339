#include "core/plan/layer_options.hpp"

#include <gtest/gtest.h>

namespace meshwright {
namespace {

TEST(LayerOptions, ComeBackFromText) {
  for (const std::string_view text :
       {"", "3:recompute=none", "0-7:recompute=full+8:recompute=modules:layernorm,mlp",
        "60-79:fsdp-reshard=no", "0:recompute=torch-selective+0:fsdp-reshard=yes"}) {
    const auto parsed = layer_options_from_text(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(to_text(*parsed), text);
  }
  for (const std::string_view text :
       {"+", "3", "3:", ":recompute=none", "3-:recompute=none", "-3:recompute=none",
        "4-3:recompute=none", "3:recompute=block:2", "3:recompute=some", "3:fsdp-reshard=true",
        "3:recompute=none+", "3:zero=1", "99999999999:recompute=none"})
    EXPECT_FALSE(layer_options_from_text(text)) << text;
}

TEST(LayerOptions, AreListedInTheOrderOfTheBlocks) {
  const auto parsed = layer_options_from_text(
      "4-5:recompute=full+8:fsdp-reshard=no+0-1:recompute=selective+2:fsdp-reshard=no");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(to_text(*parsed),
            "0-1:recompute=selective+4-5:recompute=full+2:fsdp-reshard=no+8:fsdp-reshard=no");
}

TEST(LayerOptions, HaveAValueForTheBlocksTheyName) {
  const auto parsed = layer_options_from_text("2-3:fsdp-reshard=no+5:fsdp-reshard=yes");
  ASSERT_TRUE(parsed);
  const auto reshard = [&](int block) {
    return value_of_block(parsed->reshard_after_forward, block);
  };
  for (const int block : {0, 1, 4, 6}) EXPECT_EQ(reshard(block), nullptr) << block;
  for (const int block : {2, 3}) EXPECT_FALSE(*reshard(block)) << block;
  EXPECT_TRUE(*reshard(5));
}

}  // namespace
}  // namespace meshwright
