/// Tiny models under any strategy.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "core/lowering/lower.hpp"
#include "executor/runs/train.hpp"
#include "models/load/load.hpp"
#include "models/text/presets.hpp"
#include "simulator/cost/device_cost_model.hpp"

namespace meshwright {

inline constexpr int kSteps = 3;

/// A configuration with other values, in JSON, for some of its keys.
inline std::string with_values(
    std::string_view config,
    std::initializer_list<std::pair<std::string_view, std::string_view>> values) {
  std::string text(config);
  for (const auto& [key, value] : values) {
    const std::string start = fmt::format("\"{}\": ", key);
    const std::size_t found = text.find(start);
    if (found == std::string::npos) {
      text.insert(1, fmt::format("{}{}, ", start, value));
    } else {
      const std::size_t old = found + start.size();
      text.replace(old, text.find_first_of(",}", old) - old, value);
    }
  }
  return text;
}

inline constexpr std::string_view kGpt =
    R"({"model_type": "gpt2", "n_embd": 32, "n_layer": 4, "n_head": 4, "n_positions": 16,
        "vocab_size": 200, "resid_pdrop": 0, "attn_pdrop": 0, "embd_pdrop": 0})";
inline constexpr std::string_view kLlama =
    R"({"model_type": "llama", "hidden_size": 32, "num_hidden_layers": 4, "intermediate_size": 48,
        "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 200,
        "max_position_embeddings": 16, "rms_norm_eps": 1e-5})";
inline constexpr std::string_view kMixtral =
    R"({"model_type": "mixtral", "hidden_size": 32, "num_hidden_layers": 4,
        "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2,
        "num_local_experts": 4, "num_experts_per_tok": 2, "vocab_size": 200,
        "max_position_embeddings": 16, "rms_norm_eps": 1e-5, "rope_theta": 10000,
        "sliding_window": null})";
/// Expert biases, attention sinks, sliding windows.
inline constexpr std::string_view kGptOss =
    R"({"model_type": "gpt_oss", "hidden_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
        "intermediate_size": 16, "num_local_experts": 4, "num_experts_per_tok": 2,
        "sliding_window": 5, "vocab_size": 200, "max_position_embeddings": 16})";
/// Latent attention, a dense layer, shared experts, score corrections.
inline constexpr std::string_view kDeepSeek =
    R"({"model_type": "deepseek_v3", "hidden_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 4, "intermediate_size": 48, "moe_intermediate_size": 16,
        "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2,
        "first_k_dense_replace": 1, "q_lora_rank": 24, "kv_lora_rank": 16,
        "n_group": 2, "topk_group": 1, "qk_rope_head_dim": 4, "qk_nope_head_dim": 8,
        "v_head_dim": 8, "vocab_size": 200,
        "max_position_embeddings": 16})";

inline Strategy base() {
  Strategy s;
  s.micro_batch = 1;
  s.global_batch = 8;
  s.sequence_length = 16;
  s.dtype = Dtype::kFp32;
  return s;
}

/// Parameter of a test: a model, and what its strategy changes.
struct NamedPlan {
  std::string name;
  std::string_view config;
  void (*change)(Strategy&);

  Strategy applied_to(Strategy strategy) const {
    change(strategy);
    return strategy;
  }
  friend void PrintTo(const NamedPlan& plan, std::ostream* out) { *out << plan.name; }
};
inline std::string plan_name(const testing::TestParamInfo<NamedPlan>& plan) {
  return plan.param.name;
}

inline void use_data(Strategy& s, int ranks, int zero) { s.degrees.data = ranks, s.zero = zero; }
/// Data-parallel ranks with unequal shares of the batch.
inline void use_shares(Strategy& s, std::string_view shares) {
  s.batch_shares = *batch_shares_from_text(shares);
  s.degrees.data = s.batch_shares.back().last + 1;
}
inline void use_pipeline(Strategy& s, int stages, std::string_view schedule, int chunks = 1) {
  s.degrees.pipeline = stages, s.degrees.chunks = chunks, s.schedule = schedule;
}
inline void use_sequence_parallel(Strategy& s, int ranks) {
  s.degrees.tensor = ranks, s.sequence_parallel = true;
}
/// The tensor ranks share the tokens of some blocks.
inline void share_tokens(Strategy& s, int ranks, std::string_view layer_options) {
  use_sequence_parallel(s, ranks);
  s.layer_options = *layer_options_from_text(layer_options);
}
inline void use_context(Strategy& s, int ranks, ContextAlgorithm algorithm) {
  s.degrees.context = ranks, s.model_parallelism.context = algorithm;
}
inline void use_servers(Strategy& s, int workers, int servers,
                        DataParallelKind kind = DataParallelKind::kParameterServer) {
  s.degrees.data = workers;
  s.data_parallelism.kind = kind;
  s.data_parallelism.servers = servers;
}

/// Everything that a TrainingRequest refers to.
struct TinyJob {
  ModelGraph model;
  Cluster cluster;
  Plan plan;
  std::unique_ptr<CostModel> cost_model;
  TaskGraph graph;
  TokenText text;

  TrainingRequest request(const KernelTable& kernels = kernel_table(Backend::kReference)) const {
    return {.plan = plan,
            .model = model,
            .graph = graph,
            .cost_model = *cost_model,
            .text = text,
            .kernels = kernels,
            .steps = kSteps,
            .keep_parameters = true};
  }
};

inline ModelGraph tiny_model(std::string_view config) {
  return model_from_config({.name = "tiny", .where = "tiny", .text = std::string(config)});
}

/// For flushless schedules the graph covers `steps` steps.
inline TinyJob tiny_job(std::string_view config, const Strategy& strategy,
                        const NamedText& cluster = find_cluster("dgx-a100"), int steps = kSteps) {
  TinyJob job{.model = tiny_model(config),
              .cluster = cluster_from_toml(cluster),
              .plan = {.strategy = strategy, .blocks_per_stage = {}},
              .cost_model = {},
              .graph = {},
              .text = {}};
  job.cost_model = make_device_cost_model(job.cluster);
  const int stages = static_cast<int>(stage_count(strategy.degrees));
  job.plan.blocks_per_stage.assign(static_cast<std::size_t>(stages),
                                   block_count(job.model) / stages);
  job.graph = lower(job.plan, job.model, job.cluster,
                    {.ranks = RankSet::kAll, .steps = steps, .programs = true});
  for (int i = 0; i < 1000; ++i) job.text.words.push_back((i * i + 7 * i) % 200);
  return job;
}

struct RunOptions {
  const KernelTable& kernels = kernel_table(Backend::kReference);
  const DeviceTable* device = nullptr;
  const NcclTable* nccl = nullptr;
  TimelineClock clock = TimelineClock::kVirtual;
  TrainingOptions training = {};
  RankKind ranks = RankKind::kThreads;
  NamedText cluster = find_cluster("dgx-a100");
  int steps = kSteps;
  CheckpointOptions checkpoints = {};
  LaunchOptions launch = {};
  LinkTime links = LinkTime::kReal;
};

inline TrainingRun run_plan(std::string_view config, const Strategy& strategy,
                            const RunOptions& options = {}) {
  const TinyJob job = tiny_job(config, strategy, options.cluster, options.steps);
  TrainingRequest request = job.request(options.kernels);
  request.device = options.device;
  request.nccl = options.nccl;
  request.clock = options.clock;
  request.steps = options.steps;
  request.options = options.training;
  request.checkpoints = options.checkpoints;
  request.ranks = options.ranks;
  request.launch = options.launch;
  request.links = options.links;
  return train(request);
}

}  // namespace meshwright
