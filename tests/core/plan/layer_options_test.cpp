#include "core/plan/layer_options.hpp"

#include <gtest/gtest.h>

#include "core/plan/plan.hpp"

namespace meshwright {
namespace {

TEST(LayerOptions, ComeBackFromText) {
  for (const std::string_view text :
       {"", "3:recompute=none", "0-7:recompute=full+8:recompute=modules:layernorm,mlp",
        "60-79:fsdp-reshard=no", "0:recompute=torch-selective+0:fsdp-reshard=yes+0-3:tp=1"}) {
    const auto parsed = layer_options_from_text(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(to_text(*parsed), text);
  }
  for (const std::string_view text :
       {"+", "3", "3:", ":recompute=none", "3-:recompute=none", "-3:recompute=none",
        "4-3:recompute=none", "3:recompute=block:2", "3:recompute=some", "3:fsdp-reshard=true",
        "3:recompute=none+", "3:zero=1", "3:tp=", "3:tp=1x", "99999999999:recompute=none"})
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

// Tensor ranks that share tokens are context ranks with all heads.
TEST(StrategyOfBlock, HasTheOptionsOfTheBlock) {
  Strategy s;
  s.degrees = {.data = 2, .tensor = 4};
  s.sequence_parallel = true;
  s.layer_options = *layer_options_from_text("0:recompute=full+1:fsdp-reshard=no+2:tp=1+3:tp=4");
  const Strategy plain = strategy_of_block(s, 4);
  EXPECT_TRUE(plain.layer_options.empty());
  EXPECT_EQ(strategy_of_block(s, 3), plain);
  EXPECT_EQ(strategy_of_block(s, 0).recompute.kind, RecomputeKind::kFull);
  EXPECT_FALSE(strategy_of_block(s, 1).data_parallelism.reshard_after_forward);
  const Strategy shared = strategy_of_block(s, 2);
  EXPECT_EQ(shared.degrees, (ParallelDegrees{.data = 2, .context = 4}));
  EXPECT_EQ(shared.model_parallelism.context, ContextAlgorithm::kAllToAll);
  EXPECT_FALSE(shared.sequence_parallel);
  EXPECT_TRUE(shares_tokens(s, 2));
  for (const int block : {0, 1, 3, 4}) EXPECT_FALSE(shares_tokens(s, block)) << block;
}

}  // namespace
}  // namespace meshwright
