/// Flags of Megatron-LM; those of its FSDP, and what they require, are in sharded_gradients().
#include <fmt/format.h>

#include <array>
#include <utility>

#include "models/launch/launch_settings.hpp"

namespace meshwright {
namespace {

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
  explicit MegatronFlags(const Plan& plan) : plan_(plan), s_(plan.strategy) {
    result_.unsupported = unsupported_settings(plan, {BucketRule::kMegatron, true});
  }

  MegatronSettings all() {
    degrees();
    pipeline();
    data();
    flags_ = &result_.memory;
    memory();
    flags_ = &result_.batch;
    flag("micro-batch-size", s_.micro_batch);
    flag("global-batch-size", s_.global_batch);
    flag("seq-length", s_.sequence_length);
    return std::move(result_);
  }

 private:
  void flag(std::string_view name) { flags_->push_back({std::string(name), ""}); }
  template <class Value>
  void flag(std::string_view name, const Value& value) {
    flags_->push_back({std::string(name), fmt::format("{}", value)});
  }
  void degree(std::string_view name, int value) {
    if (value > 1) flag(name, value);
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
      flag("cp-comm-type", kContextKinds[static_cast<std::size_t>(s_.model_parallelism.context)]);
    degree("expert-model-parallel-size", d.expert);
    if (d.expert > 1 || d.expert_tensor > 1) flag("expert-tensor-parallel-size", d.expert_tensor);
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
      flag("moe-expert-capacity-factor", capacity);
      flag("moe-pad-expert-input-to-capacity");
    }
    const bool is_16_bit = storage_dtype(s_.dtype) == Dtype::kBf16 || s_.dtype == Dtype::kFp16;
    if (s_.model_parallelism.routing.overlap && is_16_bit)
      flag("overlap-moe-expert-parallel-comm");
    else if (s_.model_parallelism.routing.overlap)
      miss(fmt::format("overlap of expert communication in {}", name_of(s_.dtype)));
  }

  void pipeline() {
    const ParallelDegrees& d = s_.degrees;
    if (d.pipeline == 1) return;
    flag("pipeline-model-parallel-size", d.pipeline);
    const bool is_looped = find_schedule_rule(s_.schedule)->launch.is_megatron_default;
    if (!is_looped)
      miss(fmt::format("schedule {} (1F1B is used, interleaved if there are several chunks)",
                       s_.schedule));
    if (!is_even(plan_) && is_looped)
      flag("pipeline-model-parallel-layout", megatron_layout(plan_));
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
    if (d.buckets.rule == BucketRule::kBytes) flag("ddp-bucket-size", bucket_elements(s_));
    if (gathers) flag("overlap-param-gather");
    if (d.offload_optimizer && s_.zero >= 1) {
      flag("optimizer-cpu-offload");
      flag("use-precision-aware-optimizer");
    } else if (d.offload_optimizer) {
      miss("optimizer offload without ZeRO (requires ZeRO 1 or higher)");
    }
    if (d.shard_ranks > 0)
      flag("num-distributed-optimizer-instances", s_.degrees.data / d.shard_ranks);
  }

  /// Megatron-FSDP, which requires the last two flags.
  void sharded_gradients() {
    flag("use-megatron-fsdp");
    flag("data-parallel-sharding-strategy", s_.zero == 2 ? "optim_grads" : "optim_grads_params");
    flag("no-gradient-accumulation-fusion");
    flag("ckpt-format", "fsdp_dtensor");
    result_.uses_fsdp = true;
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
        flag("recompute-granularity", "selective");
        break;
      case RecomputeKind::kFull:
        flag("recompute-granularity", "full");
        flag("recompute-method", "uniform");
        flag("recompute-num-layers", "1");
        break;
      case RecomputeKind::kBlocks:
        flag("recompute-granularity", "full");
        flag("recompute-method", "block");
        flag("recompute-num-layers", s_.recompute.blocks);
        if (!s_.recompute.blocks_per_stage.empty())
          miss(fmt::format("recompute {} (one number for all stages)", to_text(s_.recompute)));
        break;
      case RecomputeKind::kModules:
        flag("recompute-granularity", "selective");
        flag("recompute-modules", megatron_modules(s_.recompute));
        break;
      case RecomputeKind::kTorchSelective:
        miss(fmt::format("recompute {}", to_text(s_.recompute)));
        break;
    }
    if (s_.attention == AttentionAlgorithm::kStandard) flag("attention-backend", "unfused");
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
      flag("fp8-format", hybrid ? "hybrid" : "e4m3");
      flag("fp8-recipe", name_of(p.fp8_recipe));
      const bool gathers = p.fp8_parameters && s_.zero > 0;
      if (p.fp8_parameters && !gathers)
        miss("fp8 parameters without ZeRO (requires ZeRO 1 or higher)");
      if (gathers) flag("fp8-param-gather");
      if (gathers && p.fp8_recipe == Fp8Recipe::kMxfp8) flag("reuse-grad-buf-for-mxfp8-param-ag");
    }
    if (s_.dtype == Dtype::kNvfp4) {
      flag("fp4-format", "e2m1");
      flag("fp4-recipe", "nvfp4");
    }
    if (p.wide_blocks == 0) return;
    if (s_.dtype == Dtype::kFp8 && p.fp8_recipe == Fp8Recipe::kDelayed)
      return miss("first and last layers in bf16 with fp8 recipe delayed");
    flag("first-last-layers-bf16");
    flag("num-layers-at-start-in-bf16", p.wide_blocks);
    flag("num-layers-at-end-in-bf16", p.wide_blocks);
  }

  /// With --bf16 Megatron-LM accumulates and reduces in fp32 unless told otherwise, with --fp16 in
  /// fp16 unless told otherwise.
  void gradients() {
    if (s_.precision.gradients == Dtype::kBf16) flag("grad-reduce-in-bf16");
    if (s_.dtype == Dtype::kFp16 && s_.precision.gradients == Dtype::kFp32)
      flag("accumulate-allreduce-grads-in-fp32");
  }

  const Plan& plan_;
  const Strategy& s_;
  MegatronSettings result_;
  std::vector<LaunchFlag>* flags_ = &result_.parallelism;
};

}  // namespace

MegatronSettings megatron_settings(const Plan& plan) { return MegatronFlags(plan).all(); }

}  // namespace meshwright
