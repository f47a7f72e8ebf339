#include <fmt/format.h>

#include <algorithm>

#include "models/import/megatron_options.hpp"

namespace meshwright {
namespace {

constexpr std::int64_t kLargestSize = 1 << 16;

class StrategyOptions {
 public:
  StrategyOptions(OptionReader& options, std::int64_t ranks, std::int64_t layers, ImportedJob& job)
      : o_(options), ranks_(ranks), layers_(layers), job_(job), s_(job.strategy) {}

  void read() {
    degrees();
    model_parallelism();
    pipeline();
    zero();
    data_parallelism();
    precision();
    recompute();
    batch();
  }

 private:
  int size(std::string_view name) { return static_cast<int>(o_.count(name, 1, 1, kLargestSize)); }
  void note(std::string text) { job_.notes.push_back(std::move(text)); }

  void degrees() {
    ParallelDegrees& d = s_.degrees;
    d.tensor = size("tensor-model-parallel-size");
    d.pipeline = size("pipeline-model-parallel-size");
    d.context = size("context-parallel-size");
    d.expert = size("expert-model-parallel-size");
    const bool has_experts = o_.count("num-experts", 0, 0) > 0;
    d.expert_tensor = static_cast<int>(
        o_.count("expert-tensor-parallel-size", has_experts ? d.tensor : 1, 1, kLargestSize));
    const std::int64_t model = std::int64_t{d.tensor} * d.pipeline * d.context;
    if (ranks_ % model != 0) {
      o_.complain("tensor-model-parallel-size",
                  fmt::format("{} tensor x {} pipeline x {} context ranks do not divide {} GPUs",
                              d.tensor, d.pipeline, d.context, ranks_),
                  "check the number of nodes, or set --gpus");
      return;
    }
    d.data = static_cast<int>(ranks_ / model);
    s_.sequence_parallel = o_.has("sequence-parallel") && d.tensor > 1;
  }

  void model_parallelism() {
    ModelParallelism& m = s_.model_parallelism;
    m.tensor_overlap = o_.has("tp-comm-overlap");
    const std::vector<std::string> kinds{"allgather", "p2p", "a2a", "a2a+p2p"};
    const std::size_t kind = o_.choice("cp-comm-type", kinds, 1);
    if (s_.degrees.context > 1)
      m.context = kind == 3 ? ContextAlgorithm::kRing : static_cast<ContextAlgorithm>(kind);
    if (kind == 3) note("cp-comm-type a2a+p2p is modeled as p2p");
    const double capacity = o_.number("moe-expert-capacity-factor", 0);
    if (o_.has("moe-pad-expert-input-to-capacity")) m.routing.capacity = capacity;
    if (capacity > 0 && m.routing.capacity == 0) {
      m.routing.capacity = capacity;
      note("experts are padded to their capacity");
    }
    m.routing.overlap = o_.has("overlap-moe-expert-parallel-comm");
    if (o_.has("use-tp-pp-dp-mapping")) m.order = *rank_order_from_text("tp-cp-ep-pp-dp");
  }

  // ---- pipeline ----
  void pipeline() {
    const int per_rank = size("num-virtual-stages-per-pipeline-rank");
    const std::optional<std::int64_t> layers_per_stage =
        o_.optional_count("num-layers-per-virtual-pipeline-stage");
    const std::string layout = o_.text("pipeline-model-parallel-layout");
    stage_cut();
    ParallelDegrees& d = s_.degrees;
    d.chunks = per_rank;
    if (layers_per_stage) chunks_of(*layers_per_stage);
    if (!layout.empty()) read_layout(layout);
    if (d.pipeline == 1) d.chunks = 1;
    s_.schedule = default_schedule(d.chunks);
  }

  void stage_cut() {
    const auto rank = [&](std::string_view name) -> std::optional<int> {
      if (!o_.has(name)) return std::nullopt;
      return static_cast<int>(o_.count(name, 1, 1, kLargestSize));
    };
    job_.cut.first = rank("decoder-first-pipeline-num-layers");
    job_.cut.last = rank("decoder-last-pipeline-num-layers");
    job_.cut.embedding = o_.has("account-for-embedding-in-pipeline-split");
    job_.cut.loss = o_.has("account-for-loss-in-pipeline-split");
  }

  void chunks_of(std::int64_t layers_per_stage) {
    const std::int64_t all = layers_ + (job_.cut.embedding ? 1 : 0) + (job_.cut.loss ? 1 : 0);
    const std::int64_t per_chunk = layers_per_stage * s_.degrees.pipeline;
    if (all % per_chunk != 0 || all / per_chunk > kLargestSize)
      o_.complain("num-layers-per-virtual-pipeline-stage",
                  fmt::format("{} layers per stage on {} pipeline ranks do not divide {} layers",
                              layers_per_stage, s_.degrees.pipeline, all),
                  "");
    else
      s_.degrees.chunks = static_cast<int>(all / per_chunk);
  }

  void read_layout(const std::string& layout) {
    job_.blocks_per_stage = layers_of_layout(layout);
    const auto stages = static_cast<int>(job_.blocks_per_stage.size());
    if (stages == 0 || stages % s_.degrees.pipeline != 0)
      o_.complain("pipeline-model-parallel-layout",
                  fmt::format("invalid layout: {} stages for {} pipeline ranks", stages,
                              s_.degrees.pipeline),
                  "separate stages with '|'; E embedding, t layer, L loss");
    else
      s_.degrees.chunks = stages / s_.degrees.pipeline;
    if (layout.find('m') != std::string::npos)
      note("layers of multi-token prediction are left out");
  }

  // ---- memory ----
  void zero() {
    s_.zero = o_.has("use-distributed-optimizer") ? 1 : 0;
    const std::vector<std::string> strategies{"no_shard", "optim", "optim_grads",
                                              "optim_grads_params"};
    const std::size_t sharding = o_.choice("data-parallel-sharding-strategy", strategies, 3);
    if (o_.has("use-megatron-fsdp")) {
      s_.zero = static_cast<int>(sharding);
      o_.has("no-gradient-accumulation-fusion");
    }
    if (o_.has("use-torch-fsdp2")) s_.zero = 3;
    o_.has("ckpt-format");
  }

  void data_parallelism() {
    DataParallelism& d = s_.data_parallelism;
    const bool reduces = o_.has("overlap-grad-reduce"), gathers = o_.has("overlap-param-gather");
    const std::optional<std::int64_t> bucket = o_.optional_count("ddp-bucket-size");
    gradients();
    if (s_.zero == 3) {
      d.prefetch = gathers ? 1 : 0;
    } else if (reduces) {
      d.buckets.rule = bucket ? BucketRule::kBytes : BucketRule::kMegatron;
      if (bucket) d.buckets.bytes = Bytes(*bucket * bytes_per_element(s_.precision.gradients));
    }
    d.overlap_gather = gathers && (s_.zero == 1 || s_.zero == 2);
    d.offload_optimizer = o_.has("optimizer-cpu-offload");
    o_.has("use-precision-aware-optimizer");
    const std::int64_t instances =
        o_.count("num-distributed-optimizer-instances", 1, 1, kLargestSize);
    if (instances > 1 && s_.degrees.data % instances == 0)
      d.shard_ranks = static_cast<int>(s_.degrees.data / instances);
    else if (instances > 1)
      o_.complain(
          "num-distributed-optimizer-instances",
          fmt::format("{} does not divide {} data-parallel ranks", instances, s_.degrees.data), "");
  }

  /// With --bf16 fp32 unless told otherwise, with --fp16 fp16 unless told otherwise.
  void gradients() {
    const bool wide = o_.has("accumulate-allreduce-grads-in-fp32");
    const bool is_fp16 = o_.has("fp16");
    s_.precision.gradients = is_fp16 && !wide ? Dtype::kFp16 : Dtype::kFp32;
    if (o_.has("grad-reduce-in-bf16")) s_.precision.gradients = Dtype::kBf16;
  }

  void precision() {
    Precision& p = s_.precision;
    const bool is_bf16 = o_.has("bf16");
    s_.dtype = is_bf16 ? Dtype::kBf16 : o_.has("fp16") ? Dtype::kFp16 : Dtype::kFp32;
    const std::vector<std::string> recipes{"delayed", "tensorwise", "blockwise", "mxfp8"};
    const std::size_t recipe = o_.choice("fp8-recipe", recipes, 0);
    if (o_.has("fp8-format")) {
      s_.dtype = Dtype::kFp8;
      p.fp8_recipe = *fp8_recipe_from_name(recipes[recipe]);
      p.fp8_parameters = o_.has("fp8-param-gather");
    }
    o_.has("reuse-grad-buf-for-mxfp8-param-ag");
    o_.has("fp4-recipe");
    if (o_.has("fp4-format")) s_.dtype = Dtype::kNvfp4;
    const std::int64_t start = o_.count("num-layers-at-start-in-bf16", 1, 0, kLargestSize);
    const std::int64_t end = o_.count("num-layers-at-end-in-bf16", 1, 0, kLargestSize);
    if (o_.has("first-last-layers-bf16")) p.wide_blocks = static_cast<int>(std::max(start, end));
    const std::vector<std::string> backends{"flash", "fused", "unfused", "local", "auto"};
    const std::size_t backend = o_.choice("attention-backend", backends, 4);
    if (backend == 2 || backend == 3) s_.attention = AttentionAlgorithm::kStandard;
    o_.has("use-flash-attn");
  }

  void recompute() {
    const std::size_t granularity = o_.choice("recompute-granularity", {"full", "selective"}, 2);
    const std::size_t method = o_.choice("recompute-method", {"uniform", "block"}, 0);
    const std::int64_t count = o_.count("recompute-num-layers", 1, 1, kLargestSize);
    const std::vector<std::string> modules = o_.list("recompute-modules");
    const bool selective = granularity == 1 || o_.has("recompute-activations");
    if (granularity == 0 && method == 0) {
      s_.recompute.kind = RecomputeKind::kFull;
      if (count > 1)
        note(fmt::format("recomputation of {} layers at a time is modeled as 1", count));
    } else if (granularity == 0) {
      s_.recompute = {.kind = RecomputeKind::kBlocks, .blocks = static_cast<int>(count)};
    } else if (selective && modules.empty()) {
      s_.recompute.kind = RecomputeKind::kSelective;
    } else if (selective) {
      const auto parsed = recompute_from_text(fmt::format("modules:{}", fmt::join(modules, ",")));
      if (parsed)
        s_.recompute = *parsed;
      else
        o_.complain("recompute-modules", fmt::format("invalid value '{}'", fmt::join(modules, " ")),
                    "use core_attn, layernorm, mla_up_proj, moe_act, mlp, moe, shared_experts");
    }
  }

  void batch() {
    s_.micro_batch = static_cast<int>(o_.count("micro-batch-size", 1, 1, kLargestSize));
    if (!o_.has("micro-batch-size")) o_.required_count("micro-batch-size");
    s_.global_batch = o_.count("global-batch-size", std::int64_t{s_.micro_batch} * s_.degrees.data);
    s_.sequence_length = o_.required_count("seq-length");
  }

  OptionReader& o_;
  std::int64_t ranks_, layers_;
  ImportedJob& job_;
  Strategy& s_;
};

}  // namespace

void read_megatron_strategy(OptionReader& options, std::int64_t ranks, std::int64_t layers,
                            ImportedJob& job) {
  StrategyOptions(options, ranks, layers, job).read();
}

}  // namespace meshwright
