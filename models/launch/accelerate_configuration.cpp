#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "models/launch/export_formats.hpp"
#include "models/launch/launch_settings.hpp"

namespace meshwright {
namespace {

/// Decoder layers of transformers by model_type, which FSDP wraps.
struct DecoderLayer {
  std::string_view family, layer;
};
constexpr std::array kDecoderLayers{DecoderLayer{"bert", "BertLayer"},
                                    DecoderLayer{"gpt2", "GPT2Block"},
                                    DecoderLayer{"llama", "LlamaDecoderLayer"},
                                    DecoderLayer{"mistral", "MistralDecoderLayer"},
                                    DecoderLayer{"mixtral", "MixtralDecoderLayer"},
                                    DecoderLayer{"nemotron", "NemotronDecoderLayer"},
                                    DecoderLayer{"qwen2", "Qwen2DecoderLayer"},
                                    DecoderLayer{"qwen2_moe", "Qwen2MoeDecoderLayer"},
                                    DecoderLayer{"qwen3", "Qwen3DecoderLayer"},
                                    DecoderLayer{"qwen3_moe", "Qwen3MoeDecoderLayer"},
                                    DecoderLayer{"deepseek_v2", "DeepseekV2DecoderLayer"},
                                    DecoderLayer{"deepseek_v3", "DeepseekV3DecoderLayer"},
                                    DecoderLayer{"gpt_oss", "GptOssDecoderLayer"},
                                    DecoderLayer{"starcoder2", "Starcoder2DecoderLayer"}};

std::vector<std::string> accelerate_gaps(const Plan& plan) {
  const Strategy& s = plan.strategy;
  std::vector<std::string> missing = unsupported_settings(plan, {BucketRule::kPyTorch, false});
  missing.push_back(fmt::format(
      "micro-batch size {}, sequence length {} and {} gradient accumulation steps (set them in the "
      "training script)",
      s.micro_batch, s.sequence_length, microbatch_count(s)));
  if (s.degrees.tensor > 1 && !s.sequence_parallel)
    missing.emplace_back("how the model is sharded over tensor ranks (its tp_plan decides)");
  if (s.model_parallelism.tensor_overlap) missing.emplace_back("tensor-parallel overlap");
  if (s.attention == AttentionAlgorithm::kStandard)
    missing.emplace_back("standard attention (set attn_implementation in the training script)");
  if (s.recompute.kind == RecomputeKind::kFull && s.zero < 2)
    missing.emplace_back("recompute full (call gradient_checkpointing_enable() of the model)");
  if (s.zero == 3 && s.data_parallelism.prefetch > 1)
    missing.push_back(fmt::format("prefetch of {} layers", s.data_parallelism.prefetch));
  if (s.precision.gradients != Dtype::kFp32)
    missing.push_back(fmt::format("gradients in {}", name_of(s.precision.gradients)));
  return missing;
}

std::string_view yes_or_no(bool value) { return value ? "true" : "false"; }

std::string fsdp_text(const LaunchJob& job) {
  const Strategy& s = job.plan.strategy;
  const auto layer = std::ranges::find(kDecoderLayers, job.model.family, &DecoderLayer::family);
  std::string text = fmt::format(
      "fsdp_config:\n  fsdp_version: 2\n  fsdp_reshard_after_forward: {}\n"
      "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n",
      yes_or_no(s.zero == 3 && s.data_parallelism.reshard_after_forward));
  if (layer != kDecoderLayers.end())
    text += fmt::format("  fsdp_transformer_layer_cls_to_wrap: {}\n", layer->layer);
  return text + fmt::format(
                    "  fsdp_activation_checkpointing: {}\n  fsdp_offload_params: false\n"
                    "  fsdp_cpu_ram_efficient_loading: true\n"
                    "  fsdp_state_dict_type: SHARDED_STATE_DICT\n",
                    yes_or_no(s.recompute.kind == RecomputeKind::kFull));
}

/// FSDP shards over data and context ranks together.
std::string sizes_text(const Strategy& s) {
  const ParallelDegrees& d = s.degrees;
  const int shard = s.data_parallelism.shard_ranks > 0 ? s.data_parallelism.shard_ranks : d.data;
  std::string text = fmt::format(
      "parallelism_config:\n  parallelism_config_dp_replicate_size: {}\n"
      "  parallelism_config_dp_shard_size: {}\n  parallelism_config_tp_size: {}\n"
      "  parallelism_config_cp_size: {}\n",
      d.data / shard, shard, d.tensor, d.context);
  if (d.context > 1)
    text += fmt::format(
        "  parallelism_config_cp_backend: torch\n  parallelism_config_cp_comm_strategy: {}\n",
        s.model_parallelism.context == ContextAlgorithm::kRing ? "alltoall" : "allgather");
  return text;
}

std::string_view precision_word(Dtype dtype) {
  if (dtype == Dtype::kFp16) return "fp16";
  return storage_dtype(dtype) == Dtype::kBf16 ? "bf16" : "no";
}

}  // namespace

std::vector<std::string> accelerate_refusals(const Plan& plan) {
  const Strategy& s = plan.strategy;
  const ParallelDegrees& d = s.degrees;
  std::vector<std::string> reasons;
  if (d.pipeline > 1) reasons.emplace_back("has no pipeline parallelism");
  if (d.expert > 1 || d.expert_tensor > 1) reasons.emplace_back("has no expert parallelism");
  if (s.zero == 1) reasons.emplace_back("has no ZeRO 1 with FSDP2; it has ZeRO 0, 2 and 3");
  if (s.zero == 0 && (d.tensor > 1 || d.context > 1))
    reasons.emplace_back("has no ZeRO 0 with tensor or context parallelism");
  if (d.context > 1 && s.model_parallelism.context == ContextAlgorithm::kAllToAll)
    reasons.emplace_back("has no context parallelism by all-to-all");
  if (s.recompute.kind != RecomputeKind::kNone && s.recompute.kind != RecomputeKind::kFull)
    reasons.push_back(
        fmt::format("has no recomputation '{}'; it has none and full", to_text(s.recompute)));
  if (!s.layer_options.empty()) reasons.emplace_back("has no per-layer options");
  if (!s.batch_shares.empty()) reasons.emplace_back("gives all ranks equal shares of the batch");
  if (s.data_parallelism.offload_optimizer) reasons.emplace_back("has no optimizer offload alone");
  if (s.data_parallelism.kind != DataParallelKind::kCollective)
    reasons.push_back(
        fmt::format("has no data parallelism '{}'", name_of(s.data_parallelism.kind)));
  if (is_quantized(s.dtype)) reasons.push_back(fmt::format("has no {}", name_of(s.dtype)));
  if (s.model_parallelism.order != RankOrder{})
    reasons.push_back(fmt::format("has no rank order {}", to_text(s.model_parallelism.order)));
  return reasons;
}

LaunchText accelerate_configuration(const LaunchJob& job) {
  const Strategy& s = job.plan.strategy;
  LaunchText result{{}, accelerate_gaps(job.plan)};
  const std::int64_t ranks = rank_count(s.degrees);
  result.text = fmt::format(
      "# {}\n# accelerate 1.15.0, on every node: accelerate launch --config_file THIS_FILE{} "
      "TRAIN.py\n{}compute_environment: LOCAL_MACHINE\n",
      headline(job),
      job.nodes == 1 ? "" : " --machine_rank \"$NODE_RANK\" --main_process_ip \"$MASTER_ADDR\"",
      unsupported_comments(result.unsupported));
  const std::string_view type = ranks == 1 ? "NO" : s.zero >= 2 ? "FSDP" : "MULTI_GPU";
  result.text += fmt::format(
      "distributed_type: {}\nmixed_precision: '{}'\nuse_cpu: false\nnum_machines: {}\n"
      "num_processes: {}\nmachine_rank: 0\nrdzv_backend: static\nmain_process_port: 29500\n"
      "main_training_function: main\n",
      type, precision_word(s.dtype), job.nodes, ranks);
  if (s.zero >= 2) result.text += fsdp_text(job) + sizes_text(s);
  return result;
}

}  // namespace meshwright
