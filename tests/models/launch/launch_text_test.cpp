#include "models/launch/launch_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace meshwright {
namespace {

using testing::HasSubstr;

/// 8 tensor, 4 pipeline, 2 data ranks; 16 sequences: 8 micro-batches of one for each replica.
Plan plan_of(std::string schedule, int chunks, std::vector<int> blocks) {
  Plan plan;
  plan.strategy.degrees = {.data = 2, .pipeline = 4, .chunks = chunks, .tensor = 8};
  plan.strategy.sequence_parallel = true;
  plan.strategy.global_batch = 16;
  plan.strategy.sequence_length = 2048;
  plan.strategy.schedule = std::move(schedule);
  plan.strategy.zero = 1;
  plan.strategy.recompute = {RecomputeKind::kBlocks, 2};
  plan.blocks_per_stage = std::move(blocks);
  return plan;
}

TEST(LaunchText, WritesMegatronFlags) {
  const LaunchText launch = launch_text(LaunchTarget::kMegatron,
                                        plan_of("interleaved-1f1b", 2, {3, 3, 3, 3, 3, 3, 3, 3}));
  EXPECT_EQ(launch.text,
            "# Megatron-LM core_v0.19.0, 64 ranks\n"
            "--tensor-model-parallel-size 8 \\\n"
            "--sequence-parallel \\\n"
            "--pipeline-model-parallel-size 4 \\\n"
            "--num-virtual-stages-per-pipeline-rank 2 \\\n"
            "--use-distributed-optimizer \\\n"
            "--recompute-granularity full \\\n"
            "--recompute-method block \\\n"
            "--recompute-num-layers 2 \\\n"
            "--bf16 \\\n"
            "--num-layers 24 \\\n"
            "--micro-batch-size 1 \\\n"
            "--global-batch-size 16 \\\n"
            "--seq-length 2048\n");
  EXPECT_TRUE(launch.unsupported.empty());
}

// The embedding is before the layers of the first stage, the loss after those of the last.
TEST(LaunchText, WritesTheLayoutOfUnequalStagesForMegatron) {
  const LaunchText launch = launch_text(LaunchTarget::kMegatron, plan_of("1f1b", 1, {2, 3, 3, 1}));
  EXPECT_THAT(launch.text, HasSubstr("--pipeline-model-parallel-layout \"Ett|ttt|ttt|tL\""));
}

TEST(LaunchText, WritesATorchtitanFile) {
  Plan plan = plan_of("zb-v", 2, {3, 3, 3, 3, 3, 3, 3, 3});
  plan.strategy.zero = 3;
  plan.strategy.recompute = {};
  const LaunchText launch = launch_text(LaunchTarget::kTorchtitan, plan);
  EXPECT_EQ(launch.text,
            "# torchtitan v0.2.2, 64 ranks\n"
            "[parallelism]\n"
            "data_parallel_replicate_degree = 1\n"
            "data_parallel_shard_degree = 2\n"
            "fsdp_reshard_after_forward = \"always\"\n"
            "tensor_parallel_degree = 8\n"
            "context_parallel_degree = 1\n"
            "pipeline_parallel_degree = 4\n"
            "pipeline_parallel_schedule = \"ZBVZeroBubble\"\n"
            "pipeline_parallel_microbatch_size = 1\n"
            "pipeline_parallel_layers_per_stage = 3\n"
            "pipeline_parallel_first_stage_less_layers = 0\n"
            "pipeline_parallel_last_stage_less_layers = 0\n"
            "\n"
            "[training]\n"
            "local_batch_size = 8\n"
            "global_batch_size = 16\n"
            "seq_len = 2048\n"
            "\n"
            "[activation_checkpoint]\n"
            "mode = \"none\"\n");
  EXPECT_TRUE(launch.unsupported.empty());
}

TEST(LaunchText, WritesADeepSpeedFile) {
  const LaunchText launch = launch_text(LaunchTarget::kDeepSpeed, plan_of("1f1b", 1, {6, 6, 6, 6}));
  const auto file = nlohmann::json::parse(launch.text);
  EXPECT_EQ(file["train_batch_size"], 16);
  EXPECT_EQ(file["train_micro_batch_size_per_gpu"], 1);
  EXPECT_EQ(file["gradient_accumulation_steps"], 8);
  EXPECT_EQ(file["zero_optimization"]["stage"], 1);
  EXPECT_EQ(file["tensor_parallel"]["autotp_size"], 8);
  EXPECT_EQ(launch.unsupported.size(), 2u);  // pipeline and recomputation are configured in code
}

// Arguments of megatron/training/arguments.py.
TEST(LaunchText, WritesThePrecisionForMegatron) {
  Plan plan = plan_of("1f1b", 1, {6, 6, 6, 6});
  Strategy& s = plan.strategy;
  const auto missing = [&](const std::string& flags) {
    const std::string text = launch_text(LaunchTarget::kMegatron, plan).text;
    return text.find(flags) == std::string::npos ? text : "";
  };
  s.dtype = Dtype::kFp8;
  EXPECT_EQ(missing("--bf16 \\\n--fp8-format hybrid \\\n--fp8-recipe delayed \\\n"), "");
  s.precision.fp8_recipe = Fp8Recipe::kBlockwise;
  s.precision.fp8_parameters = true;
  s.precision.wide_blocks = 2;
  s.precision.gradients = Dtype::kBf16;
  EXPECT_EQ(missing("--fp8-format e4m3 \\\n--fp8-recipe blockwise \\\n--fp8-param-gather \\\n"
                    "--first-last-layers-bf16 \\\n--num-layers-at-start-in-bf16 2 \\\n"
                    "--num-layers-at-end-in-bf16 2 \\\n--grad-reduce-in-bf16 \\\n"),
            "");
  s.precision = {};
  s.dtype = Dtype::kNvfp4;
  EXPECT_EQ(missing("--bf16 \\\n--fp4-format e2m1 \\\n--fp4-recipe nvfp4 \\\n"), "");
  s.dtype = Dtype::kFp16;
  EXPECT_EQ(missing("--fp16 \\\n--accumulate-allreduce-grads-in-fp32 \\\n"), "");
}

// Its distributed optimizer and its own FSDP each require additional flags.
TEST(LaunchText, WritesFlagsThatMegatronFlagsRequire) {
  Plan plan = plan_of("1f1b", 1, {6, 6, 6, 6});
  plan.strategy.recompute = {};
  plan.strategy.zero = 3;
  plan.strategy.data_parallelism.offload_optimizer = true;
  plan.strategy.data_parallelism.shard_ranks = 1;
  const LaunchText launch = launch_text(LaunchTarget::kMegatron, plan);
  EXPECT_THAT(launch.text, HasSubstr("--use-distributed-optimizer \\\n"
                                     "--use-megatron-fsdp \\\n"
                                     "--data-parallel-sharding-strategy optim_grads_params \\\n"
                                     "--no-gradient-accumulation-fusion \\\n"
                                     "--ckpt-format fsdp_dtensor \\\n"
                                     "--overlap-grad-reduce \\\n"
                                     "--overlap-param-gather \\\n"
                                     "--optimizer-cpu-offload \\\n"
                                     "--use-precision-aware-optimizer \\\n"
                                     "--num-distributed-optimizer-instances 2 \\\n"));
  EXPECT_EQ(launch.unsupported.size(), 2u);  // the environment variable, and the pipeline
}

// It does not support overlapping the parameter gather without the gradient reduction.
TEST(LaunchText, NeverGathersAheadWithoutReducingAhead) {
  Plan plan = plan_of("1f1b", 1, {6, 6, 6, 6});
  plan.strategy.zero = 2;
  plan.strategy.data_parallelism.overlap_gather = true;
  const LaunchText launch = launch_text(LaunchTarget::kMegatron, plan);
  EXPECT_THAT(launch.text, HasSubstr("--overlap-grad-reduce"));
  EXPECT_EQ(launch.unsupported.size(), 3u);  // that, the environment variable and the pipeline
}

TEST(LaunchText, WritesTheContextAlgorithmForTorchtitan) {
  Plan plan = plan_of("1f1b", 1, {6, 6, 6, 6});
  plan.strategy.zero = 3;
  plan.strategy.recompute = {};
  plan.strategy.degrees.context = 2;
  plan.strategy.model_parallelism.context = ContextAlgorithm::kRing;
  const LaunchText ring = launch_text(LaunchTarget::kTorchtitan, plan);
  EXPECT_THAT(ring.text, HasSubstr("context_parallel_degree = 2\n"
                                   "context_parallel_rotate_method = \"alltoall\"\n"));
  EXPECT_TRUE(ring.unsupported.empty());
  plan.strategy.model_parallelism.context = ContextAlgorithm::kAllToAll;
  const LaunchText heads = launch_text(LaunchTarget::kTorchtitan, plan);
  EXPECT_EQ(heads.text.find("rotate_method"), std::string::npos);
  EXPECT_EQ(heads.unsupported.size(), 1u);
}

TEST(LaunchText, WritesSizesForContextParallelismInDeepSpeed) {
  Plan plan = plan_of("1f1b", 1, {6, 6, 6, 6});
  plan.strategy.degrees.context = 2;
  plan.strategy.model_parallelism.tensor_overlap = true;
  const auto file = nlohmann::json::parse(launch_text(LaunchTarget::kDeepSpeed, plan).text);
  EXPECT_EQ(file["data_parallel_size"], 2);
  EXPECT_EQ(file["sequence_parallel_size"], 2);
  EXPECT_EQ(file["tensor_parallel"]["tp_overlap_comm"], true);
}

// A bucket size chosen by the trainer is not presented as the plan's.
TEST(LaunchText, WritesBucketsOfTheTrainer) {
  Plan plan = plan_of("1f1b", 1, {6, 6, 6, 6});
  plan.strategy.data_parallelism.buckets.rule = BucketRule::kMegatron;
  EXPECT_TRUE(launch_text(LaunchTarget::kMegatron, plan).unsupported.empty());
  plan.strategy.data_parallelism.buckets.rule = BucketRule::kPyTorch;
  EXPECT_EQ(launch_text(LaunchTarget::kMegatron, plan).unsupported.size(), 1u);
  // Bytes become elements of the reduced gradients, here fp32.
  plan.strategy.data_parallelism.buckets = {.rule = BucketRule::kBytes, .bytes = Bytes(4'000'000)};
  EXPECT_THAT(launch_text(LaunchTarget::kMegatron, plan).text,
              HasSubstr("--ddp-bucket-size 1000000"));
  plan.strategy.zero = 1;
  EXPECT_EQ(nlohmann::json::parse(launch_text(LaunchTarget::kDeepSpeed, plan)
                                      .text)["zero_optimization"]["reduce_bucket_size"],
            1'000'000);
}

// A schedule that a trainer does not support is never silently replaced by another one.
TEST(LaunchText, ListsUnsupportedSettings) {
  for (int target = 0; target < kLaunchTargetCount; ++target)
    EXPECT_FALSE(launch_text(static_cast<LaunchTarget>(target),
                             plan_of("hanayo", 2, {3, 3, 3, 3, 3, 3, 3, 3}))
                     .unsupported.empty());
  const LaunchText titan =
      launch_text(LaunchTarget::kTorchtitan, plan_of("zb-h1", 1, {6, 6, 6, 6}));
  EXPECT_THAT(titan.text, HasSubstr("schedule.csv"));
}

}  // namespace
}  // namespace meshwright
