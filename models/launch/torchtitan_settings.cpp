/// Keys of torchtitan's job file (TOML).
#include <fmt/format.h>

#include <algorithm>

#include "models/launch/launch_settings.hpp"

namespace meshwright {
namespace {

/// The name in torch.distributed.pipelining; empty if the order must be given as a file.
std::string_view pytorch_schedule(const Plan& plan) {
  if (!plan.orders.empty()) return {};
  return find_schedule_rule(plan.strategy.schedule)->launch.pytorch;
}

/// Names of the modules of every stage: those of torchtitan's language models.
std::string module_lists(const std::vector<int>& blocks_per_stage) {
  std::string text;
  int layer = 0;
  for (std::size_t s = 0; s < blocks_per_stage.size(); ++s) {
    std::vector<std::string> names;
    if (s == 0) names.emplace_back("\"tok_embeddings\"");
    for (int b = 0; b < blocks_per_stage[s]; ++b)
      names.push_back(fmt::format("\"layers.{}\"", layer++));
    if (s + 1 == blocks_per_stage.size()) {
      names.emplace_back("\"norm\"");
      names.emplace_back("\"output\"");
    }
    text += fmt::format("{}[{}]", s == 0 ? "" : ", ", fmt::join(names, ", "));
  }
  return text;
}

std::string titan_pipeline(const Plan& plan, std::vector<std::string>& unsupported) {
  const Strategy& s = plan.strategy;
  if (s.degrees.pipeline == 1) return {};
  std::string text = fmt::format("pipeline_parallel_degree = {}\n", s.degrees.pipeline);
  if (const std::string_view name = pytorch_schedule(plan); !name.empty()) {
    text += fmt::format("pipeline_parallel_schedule = \"{}\"\n", name);
  } else {
    text +=
        "pipeline_parallel_schedule = \"PipelineScheduleMulti\"\n"
        "pipeline_parallel_schedule_csv = \"schedule.csv\"\n";
    unsupported.push_back(
        fmt::format("schedule {} by name (save its order as schedule.csv)", s.schedule));
  }
  text += fmt::format("pipeline_parallel_microbatch_size = {}\n", s.micro_batch);
  if (is_even(plan))
    text += fmt::format(
        "pipeline_parallel_layers_per_stage = {}\n"
        "pipeline_parallel_first_stage_less_layers = 0\n"
        "pipeline_parallel_last_stage_less_layers = 0\n",
        plan.blocks_per_stage[0]);
  else
    text += fmt::format("module_fqns_per_model_part = [{}]\n", module_lists(plan.blocks_per_stage));
  return text;
}

std::string titan_data(const Strategy& s, std::vector<std::string>& unsupported) {
  const DataParallelism& d = s.data_parallelism;
  const int sharded = s.zero < 2 ? 1 : d.shard_ranks > 0 ? d.shard_ranks : s.degrees.data;
  std::string text =
      fmt::format("data_parallel_replicate_degree = {}\ndata_parallel_shard_degree = {}\n",
                  s.degrees.data / sharded, sharded);
  if (s.zero >= 2)
    text += fmt::format("fsdp_reshard_after_forward = \"{}\"\n",
                        s.zero == 3 && d.reshard_after_forward ? "always" : "never");
  if (s.zero == 0 && s.degrees.data > 1 &&
      std::max({s.degrees.tensor, s.degrees.pipeline, s.degrees.context}) > 1)
    unsupported.emplace_back("ZeRO 0 with other parallelism (DDP excludes it: use ZeRO 2 or 3)");
  if (s.zero == 1)
    unsupported.emplace_back(
        "ZeRO 1 (nothing is sharded; a shard degree would shard gradients too)");
  if (d.offload_optimizer) unsupported.emplace_back("optimizer offload");
  if (s.zero == 3 && d.prefetch > 1)
    unsupported.push_back(fmt::format("prefetch of {} layers", d.prefetch));
  return text;
}

std::string titan_model(const Strategy& s, std::vector<std::string>& unsupported) {
  const ParallelDegrees& d = s.degrees;
  std::string text = fmt::format("tensor_parallel_degree = {}\n", d.tensor);
  if (s.model_parallelism.tensor_overlap) {
    text += "enable_async_tensor_parallel = true\n";
    unsupported.emplace_back("tensor-parallel overlap without torch.compile (compile the model)");
  }
  if (d.tensor > 1 && !s.sequence_parallel)
    unsupported.emplace_back("tensor parallelism without sequence parallelism (always enabled)");
  text += fmt::format("context_parallel_degree = {}\n", d.context);
  if (d.context > 1 && s.model_parallelism.context == ContextAlgorithm::kAllToAll)
    unsupported.emplace_back("context parallelism by all-to-all (keys and values are exchanged)");
  else if (d.context > 1)
    text += fmt::format(
        "context_parallel_rotate_method = \"{}\"\n",
        s.model_parallelism.context == ContextAlgorithm::kRing ? "alltoall" : "allgather");
  if (d.expert > 1) {
    text += fmt::format("expert_parallel_degree = {}\nexpert_tensor_parallel_degree = {}\n",
                        d.expert, d.expert_tensor);
    if (d.expert_tensor != 1 && d.expert_tensor != d.tensor)
      unsupported.push_back(fmt::format("expert-tensor-parallel size {} (expected 1 or {})",
                                        d.expert_tensor, d.tensor));
    if (s.zero < 2)
      unsupported.emplace_back(
          "expert parallelism without sharded gradients (expert ranks are shard ranks)");
  }
  return text;
}

std::string titan_recompute(const Recompute& recompute, std::vector<std::string>& unsupported) {
  if (recompute.kind == RecomputeKind::kNone) return "none";
  if (recompute.kind == RecomputeKind::kFull) return "full";
  if (recompute.kind == RecomputeKind::kTorchSelective) return "selective";
  unsupported.push_back(fmt::format(
      "recompute {} (\"selective\" saves other activations than the plan)", to_text(recompute)));
  return "selective";
}

void note_titan_gaps(const Strategy& s, std::vector<std::string>& missing) {
  if (s.model_parallelism.order != RankOrder{})
    missing.push_back(fmt::format("rank order {}", to_text(s.model_parallelism.order)));
  if (s.dtype != Dtype::kFp8 && (s.dtype == Dtype::kFp16 || is_quantized(s.dtype)))
    missing.push_back(fmt::format("{} (trains in bf16)", name_of(s.dtype)));
  if (s.attention == AttentionAlgorithm::kStandard)
    missing.emplace_back("standard attention (scaled_dot_product_attention is used)");
  if (s.model_parallelism.routing.capacity > 0)
    missing.emplace_back("expert capacity (no tokens are dropped)");
  if (s.model_parallelism.routing.overlap)
    missing.emplace_back("overlap of expert communication with another micro-batch");
  if (s.precision.gradients != Dtype::kFp32)
    missing.push_back(
        fmt::format("gradients in {} (reduces in fp32)", name_of(s.precision.gradients)));
}

/// Model converters. Other recipes than these two are not supported.
std::string titan_quantization(const Precision& precision, std::vector<std::string>& missing) {
  switch (precision.fp8_recipe) {
    case Fp8Recipe::kTensorwise:
      return fmt::format(
          "converters = [\"quantize.linear.float8\"]\n\n[quantize.linear.float8]\n"
          "recipe_name = \"tensorwise\"\nenable_fsdp_float8_all_gather = {}\n",
          precision.fp8_parameters);
    case Fp8Recipe::kMxfp8:
      return "converters = [\"quantize.linear.mx\"]\n\n[quantize.linear.mx]\n"
             "recipe_name = \"mxfp8_cublas\"\n";
    default:
      missing.push_back(fmt::format("fp8 with recipe {} (trains in bf16 without a model converter)",
                                    name_of(precision.fp8_recipe)));
      return "";
  }
}

}  // namespace

TorchtitanSettings torchtitan_settings(const Plan& plan) {
  const Strategy& s = plan.strategy;
  TorchtitanSettings result;
  result.unsupported = unsupported_settings(plan, {});
  std::vector<std::string>& missing = result.unsupported;
  result.parallelism =
      titan_data(s, missing) + titan_model(s, missing) + titan_pipeline(plan, missing);
  // The local batch contains all micro-batches of a pipeline; otherwise gradients are accumulated.
  const std::int64_t local = s.micro_batch * (s.degrees.pipeline > 1 ? microbatch_count(s) : 1);
  result.training = fmt::format("local_batch_size = {}\nglobal_batch_size = {}\nseq_len = {}\n",
                                local, s.global_batch, s.sequence_length);
  if (s.dtype == Dtype::kFp32 || s.dtype == Dtype::kTf32)
    result.training += "mixed_precision_param = \"float32\"\n";
  const std::string mode = titan_recompute(s.recompute, missing);
  result.activation_checkpoint = fmt::format("mode = \"{}\"\n", mode);
  // By operator; the default recomputes every second block.
  if (mode == "selective") result.activation_checkpoint += "selective_ac_option = \"op\"\n";
  note_titan_gaps(s, missing);
  if (s.dtype == Dtype::kFp8) result.quantization = titan_quantization(s.precision, missing);
  return result;
}

}  // namespace meshwright
