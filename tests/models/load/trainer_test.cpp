#include <gtest/gtest.h>

#include "models/load/trainer_toml.hpp"
#include "tests/complaints.hpp"

namespace meshwright {
namespace {

Trainer trainer_of(const std::string& text) {
  return trainer_from_toml({.name = "test", .where = "test.toml", .text = text});
}

TEST(Trainer, EveryPresetLoadsAndReadsBackWhatItWrites) {
  for (const std::string& name : trainer_preset_names()) {
    const Trainer trainer = trainer_from_toml(find_trainer(name));
    EXPECT_EQ(trainer.name, name);
    EXPECT_FALSE(trainer.version.empty()) << name;
    Trainer read = trainer_of(to_toml(trainer));
    read.sources = trainer.sources;  // not written
    EXPECT_EQ(read, trainer) << name;
  }
}

TEST(Trainer, WritesQuotesAndBackslashesOfNamesSoThatTheyReadBack) {
  Trainer trainer;
  trainer.name = R"(a"b\c)";
  trainer.version = "\"\nattention = \"triton";
  trainer.generation = R"(\)";
  EXPECT_EQ(trainer_of(to_toml(trainer)), trainer);
}

TEST(Trainer, EveryFigureOfAPresetHasASource) {
  for (const std::string& name : trainer_preset_names()) {
    const Trainer trainer = trainer_from_toml(find_trainer(name));
    if (trainer.host.per_kernel > Seconds(0.0)) {
      EXPECT_TRUE(trainer.sources.contains("host.per_kernel")) << name;
      EXPECT_TRUE(trainer.sources.contains("elementwise.forward")) << name;
    }
  }
}

TEST(Trainer, AProfileOverridesSingleValuesOfTheOneItExtends) {
  const Trainer base = trainer_from_toml(find_trainer("pytorch-2021"));
  const Trainer trainer = trainer_of(
      "schema = 1\nname = \"mine\"\nextends = \"pytorch-2021\"\n[host]\nper_kernel = \"3 us\"\n"
      "[routines.gelu]\nforward = 2.5\n");
  EXPECT_EQ(trainer.name, "mine");
  EXPECT_EQ(trainer.generation, "pytorch-2021");
  EXPECT_DOUBLE_EQ(trainer.host.per_kernel.value, 3e-6);
  EXPECT_EQ(trainer.host.per_collective, base.host.per_collective);
  EXPECT_DOUBLE_EQ(trainer.cost_of(Routine::kGelu).forward, 2.5);
  EXPECT_EQ(trainer.cost_of(Routine::kGelu).backward, base.cost_of(Routine::kGelu).backward);
  EXPECT_EQ(trainer.cost_of(Routine::kResidual), base.cost_of(Routine::kResidual));
}

TEST(Trainer, ReadsHowItLaunchesAddsUpAndOverlaps) {
  const Trainer trainer = trainer_of(
      "schema = 1\nname = \"mine\"\nattention = \"triton\"\n"
      "[host]\nmessages_block = true\nreads_expert_counts = true\n"
      "[overlap]\nmessages_per_layer = 12\ncopies_by_rank = true\nexpert_multiprocessors = 20\n"
      "[gradient_accumulation]\nfused = false\nfp16_bytes = 6\nbf16_bytes = 18\n"
      "[memory]\nsends_slices = true\noverlaps_gradient_reduction = true\n");
  EXPECT_EQ(trainer.attention, AttentionLibrary::kTriton);
  EXPECT_TRUE(trainer.host.messages_block);
  EXPECT_TRUE(trainer.host.reads_expert_counts);
  EXPECT_EQ(trainer.overlap.messages_per_layer, 12);
  EXPECT_TRUE(trainer.overlap.copies_by_rank);
  EXPECT_EQ(trainer.overlap.expert_multiprocessors, 20);
  EXPECT_FALSE(trainer.gradient_accumulation.is_fused);
  EXPECT_EQ(trainer.gradient_accumulation.fp16_bytes, 6);
  EXPECT_EQ(trainer.gradient_accumulation.bf16_bytes, 18);
  EXPECT_TRUE(trainer.memory.sends_slices);
  EXPECT_TRUE(trainer.memory.overlaps_gradient_reduction);
  EXPECT_THROW(trainer_of("schema = 1\nattention = \"tritn\"\n"), InputError);
  EXPECT_THROW(trainer_of("schema = 1\n[overlap]\nexpert_multiprocessors = -1\n"), InputError);
}

TEST(Trainer, WithoutFiguresAddsNothing) {
  Trainer plain = trainer_of("schema = 1\nname = \"ideal\"\n");
  EXPECT_EQ(plain, Trainer());
}

TEST(Trainer, NamesUnknownKeysAndProfiles) {
  const std::string message =
      complaints_of([] { trainer_of("schema = 1\n[host]\nper_kernle = \"3 us\"\n"); });
  EXPECT_NE(message.find("per_kernel"), std::string::npos) << message;
  EXPECT_THROW(trainer_of("schema = 1\nextends = \"megatron-cor\"\n"), InputError);
}

}  // namespace
}  // namespace meshwright
