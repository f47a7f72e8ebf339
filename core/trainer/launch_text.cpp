/// One section per trainer; they share the notes on what none of them supports.
#include "core/trainer/launch_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

namespace meshwright {
namespace {

/// Gradient buckets that a trainer can be told to use.
struct KnownBuckets {
  BucketRule own = BucketRule::kNone;
  bool sized = false;
};

/// Settings that none of the trainers supports, and buckets that this one does not.
std::vector<std::string> unsupported_settings(const Plan& plan, KnownBuckets known) {
  std::vector<std::string> notes;
  const DataParallelism& d = plan.strategy.data_parallelism;
  if (d.kind != DataParallelKind::kCollective)
    notes.push_back(
        fmt::format("data parallelism '{}' (collectives are used instead)", name_of(d.kind)));
  if (!plan.device_of_stage.empty()) notes.emplace_back("manual stage placement");
  const BucketRule rule = d.buckets.rule;
  const bool is_known = rule == known.own || (rule == BucketRule::kBytes && known.sized);
  if (rule != BucketRule::kNone && !is_known)
    notes.push_back(
        fmt::format("gradient buckets {} (its own bucket size is used)", to_text(d.buckets)));
  const ExpertRouting& routing = plan.strategy.model_parallelism.routing;
  if (routing.fp8_dispatch) notes.emplace_back("fp8 dispatch of tokens to experts");
  if (routing.node_limit > 0)
    notes.push_back(fmt::format("expert node limit {} (limit groups of experts in the router)",
                                routing.node_limit));
  return notes;
}

/// Trainers count the elements of a bucket in the dtype used for gradient reduction.
std::int64_t bucket_elements(const Strategy& s) {
  return s.data_parallelism.buckets.bytes.value / bytes_per_element(s.precision.gradients);
}

bool is_even(const Plan& plan) {
  const std::vector<int>& blocks = plan.blocks_per_stage;
  return std::adjacent_find(blocks.begin(), blocks.end(), std::not_equal_to<>()) == blocks.end();
}

int layer_count(const Plan& plan) {
  return std::accumulate(plan.blocks_per_stage.begin(), plan.blocks_per_stage.end(), 0);
}

// ---- Megatron-LM --------------------------------------------------------------------------------

/// "Ett|tt|tt|tL": stages from first to last; E embedding, t transformer layer, L loss.
std::string megatron_layout(const Plan& plan) {
  std::string layout = "E";
  for (std::size_t s = 0; s < plan.blocks_per_stage.size(); ++s)
    layout +=
        (s == 0 ? "" : "|") + std::string(static_cast<std::size_t>(plan.blocks_per_stage[s]), 't');
  return layout + "L";
}

/// The names of RecomputeModule are Megatron-LM's.
std::string megatron_modules(const Recompute& recompute) {
  std::string names;
  for (int i = 0; i < kRecomputeModuleCount; ++i)
    if (const auto module = static_cast<RecomputeModule>(i); recompute.has(module))
      names += fmt::format("{}{}", names.empty() ? "" : " ", name_of(module));
  return names;
}

class MegatronFlags {
 public:
  explicit MegatronFlags(const Plan& plan)
      : plan_(plan),
        s_(plan.strategy),
        result_{{}, unsupported_settings(plan, {BucketRule::kMegatron, true})} {}

  LaunchText all() {
    degrees();
    pipeline();
    data();
    memory();
    batch();
    result_.text = fmt::format("# {}, {} ranks\n{}\n", name_of(LaunchTarget::kMegatron),
                               rank_count(s_.degrees), fmt::join(flags_, " \\\n"));
    return std::move(result_);
  }

 private:
  void flag(std::string text) { flags_.push_back("--" + std::move(text)); }
  void degree(std::string_view name, int value) {
    if (value > 1) flag(fmt::format("{} {}", name, value));
  }
  void miss(std::string what) { result_.unsupported.push_back(std::move(what)); }

  void degrees() {
    const ParallelDegrees& d = s_.degrees;
    degree("tensor-model-parallel-size", d.tensor);
    if (s_.sequence_parallel) flag("sequence-parallel");
    if (s_.model_parallelism.tensor_overlap) flag("tp-comm-overlap");
    degree("context-parallel-size", d.context);
    constexpr std::array<std::string_view, kContextAlgorithmCount> kContextKinds{"allgather", "p2p",
                                                                                 "a2a"};
    if (d.context > 1)
      flag(fmt::format("cp-comm-type {}",
                       kContextKinds[static_cast<std::size_t>(s_.model_parallelism.context)]));
    degree("expert-model-parallel-size", d.expert);
    if (d.expert > 1) flag(fmt::format("expert-tensor-parallel-size {}", d.expert_tensor));
    experts();
    const std::string order = to_text(s_.model_parallelism.order);
    if (order == "tp-cp-ep-pp-dp")
      flag("use-tp-pp-dp-mapping");
    else if (order != to_text(RankOrder{}))
      miss(fmt::format("rank order {}", order));
  }

  void experts() {
    const ParallelDegrees& d = s_.degrees;
    if (d.expert > 1 && d.tensor > 1 && !s_.sequence_parallel)
      miss("expert and tensor parallelism without sequence parallelism");
    if (d.expert > 1 && s_.dtype == Dtype::kFp16) miss("expert parallelism in fp16");
    if (const double capacity = s_.model_parallelism.routing.capacity; capacity > 0) {
      flag(fmt::format("moe-expert-capacity-factor {}", capacity));
      flag("moe-pad-expert-input-to-capacity");
    }
    if (s_.model_parallelism.routing.overlap) flag("overlap-moe-expert-parallel-comm");
  }

  void pipeline() {
    const ParallelDegrees& d = s_.degrees;
    if (d.pipeline == 1) return;
    flag(fmt::format("pipeline-model-parallel-size {}", d.pipeline));
    const bool is_looped = find_schedule_rule(s_.schedule)->launch.is_megatron_default;
    if (!is_looped)
      miss(fmt::format("schedule {} (1F1B is used, interleaved if there are several chunks)",
                       s_.schedule));
    if (!is_even(plan_) && is_looped)
      flag(fmt::format("pipeline-model-parallel-layout \"{}\"", megatron_layout(plan_)));
    else
      degree("num-virtual-stages-per-pipeline-rank", d.chunks);
    if (!is_even(plan_) && !is_looped) miss("unequal stages with this schedule");
  }

  void data() {
    const DataParallelism& d = s_.data_parallelism;
    if (s_.zero >= 1) flag("use-distributed-optimizer");
    if (s_.zero >= 2) sharded_gradients();
    // ZeRO 3 reduces and gathers layer by layer. Overlapping only the gather is not supported.
    const bool gathers = s_.zero == 3 ? d.prefetch > 0 : d.overlap_gather && s_.zero >= 1;
    const bool reduces = s_.zero == 3 || d.buckets.rule != BucketRule::kNone;
    if (gathers && !reduces)
      miss("overlapping only the parameter gather (gradient reduction overlaps too)");
    if (gathers || reduces) flag("overlap-grad-reduce");
    if (d.buckets.rule == BucketRule::kBytes)
      flag(fmt::format("ddp-bucket-size {}", bucket_elements(s_)));
    if (gathers) flag("overlap-param-gather");
    if (d.offload_optimizer && s_.zero >= 1) {
      flag("optimizer-cpu-offload");
      flag("use-precision-aware-optimizer");
    } else if (d.offload_optimizer) {
      miss("optimizer offload without ZeRO (requires ZeRO 1 or higher)");
    }
    if (d.shard_ranks > 0)
      flag(fmt::format("num-distributed-optimizer-instances {}", s_.degrees.data / d.shard_ranks));
  }

  /// Megatron-FSDP, which requires the last two flags.
  void sharded_gradients() {
    flag("use-megatron-fsdp");
    flag(fmt::format("data-parallel-sharding-strategy {}",
                     s_.zero == 2 ? "optim_grads" : "optim_grads_params"));
    flag("no-gradient-accumulation-fusion");
    flag("ckpt-format fsdp_dtensor");
    miss("environment variables (Megatron-FSDP: CUDA_DEVICE_MAX_CONNECTIONS must not be 1)");
    if (s_.degrees.pipeline > 1)
      miss(fmt::format("ZeRO {} with a pipeline (Megatron-FSDP excludes it)", s_.zero));
    if (s_.zero == 3 && s_.data_parallelism.prefetch > 1)
      miss(fmt::format("prefetch of {} layers", s_.data_parallelism.prefetch));
    if (s_.zero == 3 && !s_.data_parallelism.reshard_after_forward)
      miss("keeping gathered parameters after the forward pass");
  }

  void memory() {
    switch (s_.recompute.kind) {
      case RecomputeKind::kNone:
        break;
      case RecomputeKind::kSelective:
        flag("recompute-granularity selective");
        break;
      case RecomputeKind::kFull:
        flag("recompute-granularity full");
        flag("recompute-method uniform");
        flag("recompute-num-layers 1");
        break;
      case RecomputeKind::kBlocks:
        flag("recompute-granularity full");
        flag("recompute-method block");
        flag(fmt::format("recompute-num-layers {}", s_.recompute.blocks));
        if (!s_.recompute.blocks_per_stage.empty())
          miss(fmt::format("recompute {} (one number for all stages)", to_text(s_.recompute)));
        break;
      case RecomputeKind::kModules:
        flag("recompute-granularity selective");
        flag(fmt::format("recompute-modules {}", megatron_modules(s_.recompute)));
        break;
      case RecomputeKind::kTorchSelective:
        miss(fmt::format("recompute {}", to_text(s_.recompute)));
        break;
    }
    if (s_.attention == AttentionAlgorithm::kStandard) flag("attention-backend unfused");
    if (s_.dtype == Dtype::kFp16) flag("fp16");
    if (storage_dtype(s_.dtype) == Dtype::kBf16) flag("bf16");
    quantization();
    gradients();
  }

  /// Recipes with a scale per block use E4M3 in both passes, the others E5M2 for gradients.
  void quantization() {
    const Precision& p = s_.precision;
    if (s_.dtype == Dtype::kFp8) {
      const bool hybrid =
          p.fp8_recipe == Fp8Recipe::kDelayed || p.fp8_recipe == Fp8Recipe::kTensorwise;
      flag(fmt::format("fp8-format {}", hybrid ? "hybrid" : "e4m3"));
      flag(fmt::format("fp8-recipe {}", name_of(p.fp8_recipe)));
      if (p.fp8_parameters) flag("fp8-param-gather");
      if (p.fp8_parameters && p.fp8_recipe == Fp8Recipe::kMxfp8)
        flag("reuse-grad-buf-for-mxfp8-param-ag");
    }
    if (s_.dtype == Dtype::kNvfp4) {
      flag("fp4-format e2m1");
      flag("fp4-recipe nvfp4");
    }
    if (p.wide_blocks == 0) return;
    flag("first-last-layers-bf16");
    flag(fmt::format("num-layers-at-start-in-bf16 {}", p.wide_blocks));
    flag(fmt::format("num-layers-at-end-in-bf16 {}", p.wide_blocks));
  }

  /// With --bf16 Megatron-LM accumulates and reduces in fp32 unless told otherwise, with --fp16 in
  /// fp16 unless told otherwise.
  void gradients() {
    if (s_.precision.gradients == Dtype::kBf16) flag("grad-reduce-in-bf16");
    if (s_.dtype == Dtype::kFp16 && s_.precision.gradients == Dtype::kFp32)
      flag("accumulate-allreduce-grads-in-fp32");
  }

  void batch() {
    flag(fmt::format("num-layers {}", layer_count(plan_)));
    flag(fmt::format("micro-batch-size {}", s_.micro_batch));
    flag(fmt::format("global-batch-size {}", s_.global_batch));
    flag(fmt::format("seq-length {}", s_.sequence_length));
  }

  const Plan& plan_;
  const Strategy& s_;
  std::vector<std::string> flags_;
  LaunchText result_;
};

// ---- torchtitan ---------------------------------------------------------------------------------

/// The name in torch.distributed.pipelining; empty if the order must be given as a file.
std::string_view pytorch_schedule(const Plan& plan) {
  if (!plan.orders.empty()) return {};
  return find_schedule_rule(plan.strategy.schedule)->launch.pytorch;
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
    unsupported.push_back(
        fmt::format("layers per stage {} (list them in module_fqns_per_model_part)",
                    fmt::join(plan.blocks_per_stage, " ")));
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

LaunchText torchtitan_file(const Plan& plan) {
  const Strategy& s = plan.strategy;
  const ParallelDegrees& d = s.degrees;
  LaunchText result{{}, unsupported_settings(plan, {})};
  std::vector<std::string>& missing = result.unsupported;
  std::string text = fmt::format("# {}, {} ranks\n[parallelism]\n",
                                 name_of(LaunchTarget::kTorchtitan), rank_count(d));
  text += titan_data(s, missing);
  text += titan_model(s, missing);
  text += titan_pipeline(plan, missing);
  if (s.model_parallelism.order != RankOrder{})
    missing.push_back(fmt::format("rank order {}", to_text(s.model_parallelism.order)));
  // The local batch contains all micro-batches of a pipeline; otherwise gradients are accumulated.
  const std::int64_t local = s.micro_batch * (d.pipeline > 1 ? microbatch_count(s) : 1);
  text += fmt::format("\n[training]\nlocal_batch_size = {}\nglobal_batch_size = {}\nseq_len = {}\n",
                      local, s.global_batch, s.sequence_length);
  if (s.dtype == Dtype::kFp32 || s.dtype == Dtype::kTf32)
    text += "mixed_precision_param = \"float32\"\n";
  if (s.dtype == Dtype::kFp8)
    missing.push_back(fmt::format("fp8 with recipe {} (trains in bf16 without a model converter)",
                                  name_of(s.precision.fp8_recipe)));
  else if (s.dtype == Dtype::kFp16 || is_quantized(s.dtype))
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
  text += fmt::format("\n[activation_checkpoint]\nmode = \"{}\"\n",
                      titan_recompute(s.recompute, missing));
  result.text = std::move(text);
  return result;
}

// ---- DeepSpeed ----------------------------------------------------------------------------------

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
  if (s.model_parallelism.order != RankOrder{})
    unsupported.push_back(fmt::format("rank order {}", to_text(s.model_parallelism.order)));
}

LaunchText deepspeed_file(const Plan& plan) {
  const Strategy& s = plan.strategy;
  const ParallelDegrees& d = s.degrees;
  LaunchText result{{}, unsupported_settings(plan, {.sized = s.zero > 0})};
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
  if (s.zero == 3 && s.data_parallelism.shard_ranks > 0)
    zero["mics_shard_size"] = s.data_parallelism.shard_ranks;
  file["zero_optimization"] = zero;
  if (s.dtype == Dtype::kBf16) file["bf16"] = {{"enabled", true}};
  if (s.dtype == Dtype::kFp16) file["fp16"] = {{"enabled", true}};
  if (is_quantized(s.dtype))
    result.unsupported.push_back(fmt::format("{} (trains in bf16 or fp16)", name_of(s.dtype)));
  // Without these keys gradients have the dtype of the model.
  const std::string_view gradients = name_of(s.precision.gradients);
  file["communication_data_type"] = gradients == "bf16" ? "bfp16" : gradients;
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

}  // namespace

LaunchText launch_text(LaunchTarget target, const Plan& plan) {
  switch (target) {
    case LaunchTarget::kMegatron:
      return MegatronFlags(plan).all();
    case LaunchTarget::kTorchtitan:
      return torchtitan_file(plan);
    case LaunchTarget::kDeepSpeed:
      return deepspeed_file(plan);
  }
  return {};
}

}  // namespace meshwright
