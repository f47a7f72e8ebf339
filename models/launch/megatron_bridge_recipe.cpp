/// The flags of Megatron-LM as fields of Megatron-Bridge's ConfigContainer: most are fields of the
/// same dataclasses of Megatron-Core, which the model provider extends.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "models/launch/export_formats.hpp"
#include "models/launch/megatron.hpp"

namespace meshwright {
namespace {

/// How a value is written in Python.
enum class PythonValue : std::uint8_t {
  kAsGiven,  ///< numbers
  kText,     ///< "p2p"
  kList,     ///< ["core_attn", "mlp"]
  kTuple,    ///< (4095, 0)
  kFixed     ///< `fixed`, whatever the flag's value
};
struct BridgeField {
  std::string_view flag;
  std::string_view place;  ///< "model", "ddp", …; empty: implied by another field
  std::string_view field;
  PythonValue kind = PythonValue::kAsGiven;
  std::string_view fixed = "True";
};
constexpr auto kText = PythonValue::kText;
constexpr auto kFixed = PythonValue::kFixed;
constexpr std::array kBridgeFields{
    BridgeField{"num-layers", "model", "num_layers"},
    BridgeField{"hidden-size", "model", "hidden_size"},
    BridgeField{"ffn-hidden-size", "model", "ffn_hidden_size"},
    BridgeField{"num-attention-heads", "model", "num_attention_heads"},
    BridgeField{"group-query-attention", "", ""},
    BridgeField{"num-query-groups", "model", "num_query_groups"},
    BridgeField{"kv-channels", "model", "kv_channels"},
    BridgeField{"max-position-embeddings", "", ""},
    BridgeField{"untie-embeddings-and-output-weights", "model",
                "share_embeddings_and_output_weights", kFixed, "False"},
    BridgeField{"position-embedding-type", "model", "position_embedding_type", kText},
    BridgeField{"rotary-base", "model", "rotary_base"},
    BridgeField{"rotary-percent", "model", "rotary_percent"},
    BridgeField{"use-rope-scaling", "model", "rope_scaling", kFixed},
    BridgeField{"rope-scaling-factor", "model", "rope_scaling_factor"},
    BridgeField{"normalization", "model", "normalization", kText},
    BridgeField{"norm-epsilon", "model", "layernorm_epsilon"},
    BridgeField{"qk-layernorm", "model", "qk_layernorm", kFixed},
    BridgeField{"qk-l2-norm", "model", "qk_l2_norm", kFixed},
    BridgeField{"no-rope-freq", "model", "no_rope_freq"},
    BridgeField{"disable-bias-linear", "model", "add_bias_linear", kFixed, "False"},
    BridgeField{"add-qkv-bias", "model", "add_qkv_bias", kFixed},
    BridgeField{"multi-latent-attention", "model", "multi_latent_attention", kFixed},
    BridgeField{"q-lora-rank", "model", "q_lora_rank"},
    BridgeField{"kv-lora-rank", "model", "kv_lora_rank"},
    BridgeField{"qk-head-dim", "model", "qk_head_dim"},
    BridgeField{"qk-pos-emb-head-dim", "model", "qk_pos_emb_head_dim"},
    BridgeField{"v-head-dim", "model", "v_head_dim"},
    BridgeField{"softmax-type", "model", "softmax_type", kText},
    BridgeField{"window-size", "model", "window_size", PythonValue::kTuple},
    BridgeField{"window-attn-skip-freq", "model", "window_attn_skip_freq"},
    BridgeField{"num-experts", "model", "num_moe_experts"},
    BridgeField{"moe-router-topk", "model", "moe_router_topk"},
    BridgeField{"moe-ffn-hidden-size", "model", "moe_ffn_hidden_size"},
    BridgeField{"moe-layer-freq", "model", "moe_layer_freq"},
    BridgeField{"moe-shared-expert-intermediate-size", "model",
                "moe_shared_expert_intermediate_size"},
    BridgeField{"moe-shared-expert-gate", "model", "moe_shared_expert_gate", kFixed},
    BridgeField{"moe-grouped-gemm", "model", "moe_grouped_gemm", kFixed},
    BridgeField{"moe-token-dispatcher-type", "model", "moe_token_dispatcher_type", kText},
    BridgeField{"moe-apply-probs-on-input", "model", "moe_apply_probs_on_input", kFixed},
    BridgeField{"moe-router-score-function", "model", "moe_router_score_function", kText},
    BridgeField{"moe-router-enable-expert-bias", "model", "moe_router_enable_expert_bias", kFixed},
    BridgeField{"moe-router-load-balancing-type", "model", "moe_router_load_balancing_type", kText},
    BridgeField{"moe-aux-loss-coeff", "model", "moe_aux_loss_coeff"},
    BridgeField{"attention-dropout", "model", "attention_dropout"},
    BridgeField{"hidden-dropout", "model", "hidden_dropout"},
    BridgeField{"tensor-model-parallel-size", "model", "tensor_model_parallel_size"},
    BridgeField{"sequence-parallel", "model", "sequence_parallel", kFixed},
    BridgeField{"tp-comm-overlap", "comm_overlap", "tp_comm_overlap", kFixed},
    BridgeField{"context-parallel-size", "model", "context_parallel_size"},
    BridgeField{"cp-comm-type", "model", "cp_comm_type", kText},
    BridgeField{"expert-model-parallel-size", "model", "expert_model_parallel_size"},
    BridgeField{"expert-tensor-parallel-size", "model", "expert_tensor_parallel_size"},
    BridgeField{"use-tp-pp-dp-mapping", "dist", "use_tp_pp_dp_mapping", kFixed},
    BridgeField{"moe-expert-capacity-factor", "model", "moe_expert_capacity_factor"},
    BridgeField{"moe-pad-expert-input-to-capacity", "model", "moe_pad_expert_input_to_capacity",
                kFixed},
    BridgeField{"overlap-moe-expert-parallel-comm", "comm_overlap",
                "overlap_moe_expert_parallel_comm", kFixed},
    BridgeField{"pipeline-model-parallel-size", "model", "pipeline_model_parallel_size"},
    BridgeField{"pipeline-model-parallel-layout", "model", "pipeline_model_parallel_layout", kText},
    BridgeField{"num-virtual-stages-per-pipeline-rank", "model",
                "virtual_pipeline_model_parallel_size"},
    BridgeField{"use-distributed-optimizer", "ddp", "use_distributed_optimizer", kFixed},
    BridgeField{"use-megatron-fsdp", "ddp", "use_megatron_fsdp", kFixed},
    BridgeField{"data-parallel-sharding-strategy", "ddp", "data_parallel_sharding_strategy", kText},
    BridgeField{"no-gradient-accumulation-fusion", "model", "gradient_accumulation_fusion", kFixed,
                "False"},
    BridgeField{"ckpt-format", "checkpoint", "ckpt_format", kText},
    BridgeField{"overlap-grad-reduce", "ddp", "overlap_grad_reduce", kFixed},
    BridgeField{"ddp-bucket-size", "ddp", "bucket_size"},
    BridgeField{"overlap-param-gather", "ddp", "overlap_param_gather", kFixed},
    BridgeField{"optimizer-cpu-offload", "optimizer", "optimizer_cpu_offload", kFixed},
    BridgeField{"use-precision-aware-optimizer", "optimizer", "use_precision_aware_optimizer",
                kFixed},
    BridgeField{"num-distributed-optimizer-instances", "ddp",
                "num_distributed_optimizer_instances"},
    BridgeField{"recompute-granularity", "model", "recompute_granularity", kText},
    BridgeField{"recompute-method", "model", "recompute_method", kText},
    BridgeField{"recompute-num-layers", "model", "recompute_num_layers"},
    BridgeField{"recompute-modules", "model", "recompute_modules", PythonValue::kList},
    BridgeField{"attention-backend", "model", "attention_backend", kFixed, "AttnBackend.unfused"},
    BridgeField{"bf16", "", ""},
    BridgeField{"fp16", "", ""},
    BridgeField{"fp8-format", "mixed_precision", "fp8", kText},
    BridgeField{"fp8-recipe", "mixed_precision", "fp8_recipe", kText},
    BridgeField{"fp8-param-gather", "mixed_precision", "fp8_param_gather", kFixed},
    BridgeField{"reuse-grad-buf-for-mxfp8-param-ag", "mixed_precision",
                "reuse_grad_buf_for_mxfp8_param_ag", kFixed},
    BridgeField{"fp4-format", "mixed_precision", "fp4", kText},
    BridgeField{"fp4-recipe", "mixed_precision", "fp4_recipe", kText},
    BridgeField{"first-last-layers-bf16", "mixed_precision", "first_last_layers_bf16", kFixed},
    BridgeField{"num-layers-at-start-in-bf16", "mixed_precision", "num_layers_at_start_in_bf16"},
    BridgeField{"num-layers-at-end-in-bf16", "mixed_precision", "num_layers_at_end_in_bf16"},
    BridgeField{"grad-reduce-in-bf16", "mixed_precision", "grad_reduce_in_fp32", kFixed, "False"},
    BridgeField{"accumulate-allreduce-grads-in-fp32", "mixed_precision", "grad_reduce_in_fp32",
                kFixed},
    BridgeField{"micro-batch-size", "train", "micro_batch_size"},
    BridgeField{"global-batch-size", "train", "global_batch_size"},
    BridgeField{"seq-length", "model", "seq_length"}};

std::string python_text(const BridgeField& field, const std::string& value) {
  switch (field.kind) {
    case PythonValue::kAsGiven:
      return value;
    case PythonValue::kText:
      return fmt::format("\"{}\"", value);
    case PythonValue::kTuple:
      return fmt::format("({})", value);
    case PythonValue::kFixed:
      return std::string(field.fixed);
    case PythonValue::kList: {
      std::string items = value;
      for (std::size_t at = 0; (at = items.find(' ', at)) != std::string::npos; at += 4)
        items.replace(at, 1, "\", \"");
      return fmt::format("[\"{}\"]", items);
    }
  }
  return value;
}

/// Assignments by place: "cfg.ddp" → "overlap_grad_reduce = True".
using Assignments = std::map<std::string_view, std::vector<std::string>>;

/// Activations are functions, not switches.
void add_activation(const std::string& flag, Assignments& assignments) {
  auto& model = assignments["model"];
  if (flag == "swiglu") {
    model.emplace_back("gated_linear_unit=True");
    model.emplace_back("activation_func=F.silu");
  } else {
    model.emplace_back("activation_func=squared_relu");
  }
}

Assignments assignments_of(const MegatronJob& megatron, std::vector<std::string>& missing) {
  Assignments assignments;
  for (const MegatronJob::Group& group : megatron.groups) {
    if (group.name == "DATA_ARGS" || group.name == "TRAINING_ARGS") continue;
    for (const LaunchFlag& flag : group.flags) {
      if (flag.name == "swiglu" || flag.name == "squared-relu") {
        add_activation(flag.name, assignments);
        continue;
      }
      const auto field = std::ranges::find(kBridgeFields, flag.name, &BridgeField::flag);
      if (field == kBridgeFields.end())
        missing.push_back("--" + flag.name);
      else if (!field->place.empty())
        assignments[field->place].push_back(
            fmt::format("{}={}", field->field, python_text(*field, flag.value)));
    }
  }
  return assignments;
}

std::string call_text(std::string_view name, const std::vector<std::string>& arguments,
                      std::string_view indent) {
  if (arguments.empty()) return fmt::format("{}()", name);
  std::string text = fmt::format("{}(\n", name);
  for (const std::string& one : arguments) text += fmt::format("{}    {},\n", indent, one);
  return text + fmt::format("{})", indent);
}

std::string imports_text(const LaunchJob& job, const Assignments& assignments) {
  const bool is_latent = job.model.shape.attention.latent.has_value();
  std::string text = "import torch\nimport torch.nn.functional as F\n";
  if (job.model.shape.feed_forward.activation == ActivationKind::kSquaredRelu)
    text += "from megatron.core.activations import squared_relu\n";
  if (job.plan.strategy.attention == AttentionAlgorithm::kStandard)
    text += "from megatron.core.transformer.enums import AttnBackend\n";
  text += is_latent ? "from megatron.bridge.models.mla_provider import MLAModelProvider\n"
                    : "from megatron.bridge.models.gpt_provider import GPTModelProvider\n";
  text +=
      "from megatron.bridge.recipes.utils.optimizer_utils import (\n"
      "    distributed_fused_adam_with_cosine_annealing,\n)\n";
  if (assignments.contains("comm_overlap"))
    text += "from megatron.bridge.training.comm_overlap import CommOverlapConfig\n";
  return text +
         "from megatron.bridge.training.config import (\n    CheckpointConfig,\n"
         "    ConfigContainer,\n    DistributedDataParallelConfig,\n    DistributedInitConfig,\n"
         "    LoggerConfig,\n    MockGPTDatasetConfig,\n    RNGConfig,\n    TokenizerConfig,\n"
         "    TrainingConfig,\n)\n"
         "from megatron.bridge.training.gpt_step import forward_step\n"
         "from megatron.bridge.training.mixed_precision import MixedPrecisionConfig\n"
         "from megatron.bridge.training.pretrain import pretrain\n";
}

/// Bridge's own defaults are those of its recipes: all that the plan decides is written.
void add_defaults(const LaunchJob& job, Assignments& assignments) {
  const Strategy& s = job.plan.strategy;
  auto& model = assignments["model"];
  model.push_back(fmt::format("vocab_size={}", job.model.shape.vocabulary));
  if (job.model.shape.vocabulary % s.degrees.tensor != 0)
    model.emplace_back("should_pad_vocab=True");
  const std::string dtype = s.dtype == Dtype::kFp16                  ? "torch.float16"
                            : storage_dtype(s.dtype) == Dtype::kBf16 ? "torch.bfloat16"
                                                                     : "torch.float32";
  if (s.degrees.pipeline > 1) model.push_back("pipeline_dtype=" + dtype);
  auto& precision = assignments["mixed_precision"];
  precision.push_back("params_dtype=" + dtype);
  precision.push_back("pipeline_dtype=" + dtype);
  if (dtype == "torch.bfloat16") precision.emplace_back("bf16=True");
  if (dtype == "torch.float16") precision.emplace_back("fp16=True");
  assignments["train"].push_back(fmt::format("train_iters={}", kExportedSteps));
  assignments["train"].emplace_back("eval_iters=0");
  auto& ddp = assignments["ddp"];
  if (s.zero == 0) ddp.emplace_back("use_distributed_optimizer=False");
  if (s.precision.gradients == Dtype::kFp32) ddp.emplace_back("grad_reduce_in_fp32=True");
}

}  // namespace

LaunchText megatron_bridge_recipe(const LaunchJob& job) {
  const MegatronJob megatron = megatron_job(job);
  std::vector<std::string> missing = megatron.unsupported;
  Assignments a = assignments_of(megatron, missing);
  add_defaults(job, a);
  const std::int64_t length = job.plan.strategy.sequence_length;
  std::string text = fmt::format(
      "# {}\n# Megatron-Bridge 0.3.1, on mock data for {} steps{}:\n# {}{}\n{}\n{}\n\n"
      "def config() -> ConfigContainer:\n"
      "    optimizer, scheduler = distributed_fused_adam_with_cosine_annealing(\n"
      "        lr_warmup_iters=2, lr_decay_iters={}, max_lr=1e-4, min_lr=1e-5\n    )\n",
      headline(job), kExportedSteps, job.nodes == 1 ? "" : ", on every node",
      [&] {
        std::string environment;
        for (const auto& [name, value] : megatron.environment)
          environment += fmt::format("{}={} ", name, value);
        return environment;
      }(),
      torchrun_text(job, "THIS_FILE"), unsupported_comments(missing), imports_text(job, a),
      kExportedSteps);
  const bool is_latent = job.model.shape.attention.latent.has_value();
  text += fmt::format(
      "    model = {}\n",
      call_text(is_latent ? "MLAModelProvider" : "GPTModelProvider", a["model"], "    "));
  for (const std::string& one : a["optimizer"])
    text += fmt::format("    optimizer.{} = {}\n", one.substr(0, one.find('=')),
                        one.substr(one.find('=') + 1));
  const std::string in = "        ";
  std::vector<std::string> parts{
      "model=model",
      "optimizer=optimizer",
      "scheduler=scheduler",
      "train=" + call_text("TrainingConfig", a["train"], in),
      "ddp=" + call_text("DistributedDataParallelConfig", a["ddp"], in),
      "mixed_precision=" + call_text("MixedPrecisionConfig", a["mixed_precision"], in),
      "dist=" + call_text("DistributedInitConfig", a["dist"], in),
      fmt::format("dataset=MockGPTDatasetConfig(\n{0}    random_seed=1234,\n"
                  "{0}    reset_position_ids=False,\n{0}    reset_attention_mask=False,\n"
                  "{0}    eod_mask_loss=False,\n{0}    seq_length={1},\n"
                  "{0}    num_dataset_builder_threads=1,\n{0}    dataloader_type=\"single\",\n{0})",
                  in, length),
      "logger=LoggerConfig(log_interval=1)",
      fmt::format("tokenizer=TokenizerConfig(tokenizer_type=\"NullTokenizer\", vocab_size={})",
                  job.model.shape.vocabulary),
      "checkpoint=" + call_text("CheckpointConfig", a["checkpoint"], in),
      "rng=RNGConfig(seed=1234)"};
  if (a.contains("comm_overlap")) {
    auto& overlap = a["comm_overlap"];
    if (!job.plan.strategy.model_parallelism.tensor_overlap)
      overlap.insert(overlap.begin(), "tp_comm_overlap=False");
    parts.push_back("comm_overlap=" + call_text("CommOverlapConfig", overlap, in));
  }
  text += fmt::format(
      "    return {}\n\n\nif __name__ == \"__main__\":\n"
      "    pretrain(config(), forward_step)\n",
      call_text("ConfigContainer", parts, "    "));
  return {std::move(text), std::move(missing)};
}

}  // namespace meshwright
