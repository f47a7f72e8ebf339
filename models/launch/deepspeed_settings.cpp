/// Keys of DeepSpeed's configuration file (JSON).
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/launch/launch_settings.hpp"

namespace meshwright {
namespace {

void note_deepspeed_gaps(const Plan& plan, std::vector<std::string>& unsupported) {
  const Strategy& s = plan.strategy;
  const ParallelDegrees& d = s.degrees;
  if (d.pipeline > 1)
    unsupported.push_back(
        fmt::format("pipeline parallelism in the configuration file (in code: PipelineModule("
                    "num_stages={}, partition_method=\"uniform\"), 1F1B without chunks)",
                    d.pipeline));
  if (d.pipeline > 1 && s.zero >= 2)
    unsupported.push_back(
        fmt::format("ZeRO {} with a pipeline (PipelineModule supports 0 and 1)", s.zero));
  if (d.pipeline > 1 && !is_even(plan)) unsupported.emplace_back("unequal stages");
  if (d.context > 1 && s.model_parallelism.context != ContextAlgorithm::kAllToAll)
    unsupported.push_back(fmt::format("context parallelism by {} (all-to-all of heads is used)",
                                      name_of(s.model_parallelism.context)));
  if (s.model_parallelism.routing.overlap)
    unsupported.emplace_back("overlap of expert communication with another micro-batch");
  if (s.recompute.kind != RecomputeKind::kNone)
    unsupported.push_back(fmt::format(
        "recompute {} (call deepspeed.checkpointing in the model code)", to_text(s.recompute)));
  if (s.data_parallelism.shard_ranks > 0)
    unsupported.push_back(fmt::format("sharding over {} of the data ranks (MiCS was removed)",
                                      s.data_parallelism.shard_ranks));
  if (s.model_parallelism.order != RankOrder{})
    unsupported.push_back(fmt::format("rank order {}", to_text(s.model_parallelism.order)));
}

}  // namespace

LaunchText deepspeed_settings(const Plan& plan) {
  const Strategy& s = plan.strategy;
  const ParallelDegrees& d = s.degrees;
  LaunchText result;
  result.unsupported = unsupported_settings(plan, {.sized = s.zero > 0});
  nlohmann::ordered_json file;
  file["train_batch_size"] = s.global_batch;
  file["train_micro_batch_size_per_gpu"] = s.micro_batch;
  file["gradient_accumulation_steps"] = microbatch_count(s);
  nlohmann::ordered_json zero{{"stage", s.zero}};
  if (s.zero > 0) zero["overlap_comm"] = s.data_parallelism.buckets.rule != BucketRule::kNone;
  if (s.zero > 0 && s.data_parallelism.buckets.rule == BucketRule::kBytes)
    zero["reduce_bucket_size"] = bucket_elements(s);
  if (s.zero > 0 && s.data_parallelism.offload_optimizer)
    zero["offload_optimizer"] = {{"device", "cpu"}};
  file["zero_optimization"] = zero;
  if (s.dtype == Dtype::kBf16) file["bf16"] = {{"enabled", true}};
  if (s.dtype == Dtype::kFp16) file["fp16"] = {{"enabled", true}};
  if (is_quantized(s.dtype))
    result.unsupported.push_back(fmt::format("{} (trains in bf16 or fp16)", name_of(s.dtype)));
  // Without these keys gradients have the dtype of the model.
  const std::string_view gradients = name_of(s.precision.gradients);
  file["communication_data_type"] = gradients;
  file["data_types"] = {{"grad_accum_dtype", gradients}};
  if (d.tensor > 1) file["tensor_parallel"] = {{"autotp_size", d.tensor}};
  if (s.model_parallelism.tensor_overlap) file["tensor_parallel"]["tp_overlap_comm"] = true;
  if (d.expert > 1)
    file["expert_parallel"] = {{"enabled", true},
                               {"autoep_size", d.expert},
                               {"expert_tensor_parallel_size", d.expert_tensor}};
  if (d.context > 1) {  // the rank layout is derived from both sizes
    file["data_parallel_size"] = d.data;
    file["sequence_parallel_size"] = d.context;
  }
  note_deepspeed_gaps(plan, result.unsupported);
  result.text = file.dump(2) + "\n";
  return result;
}

}  // namespace meshwright
