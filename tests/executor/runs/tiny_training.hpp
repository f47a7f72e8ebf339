/// Tiny models under any strategy, trained with the reference kernels.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/lowering/lower.hpp"
#include "executor/runs/train.hpp"
#include "models/load/load.hpp"
#include "models/text/presets.hpp"
#include "simulator/cost/device_cost_model.hpp"

namespace meshwright {

inline constexpr int kSteps = 3;

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

inline Strategy base() {
  Strategy s;
  s.micro_batch = 1;
  s.global_batch = 8;
  s.sequence_length = 16;
  s.dtype = Dtype::kFp32;
  return s;
}

/// Everything that a TrainingRequest refers to.
struct TinyJob {
  ModelGraph model;
  Cluster cluster;
  Plan plan;
  std::unique_ptr<CostModel> cost_model;
  TaskGraph graph;
  TokenText text;

  TrainingRequest request() const {
    return {.plan = plan,
            .model = model,
            .graph = graph,
            .cost_model = *cost_model,
            .text = text,
            .kernels = kernel_table(Backend::kReference),
            .steps = kSteps,
            .keep_parameters = true};
  }
};

/// For flushless schedules the graph covers `steps` steps.
inline TinyJob tiny_job(std::string_view config, const Strategy& strategy,
                        const NamedText& cluster = find_cluster("dgx-a100"), int steps = kSteps) {
  TinyJob job{
      .model = model_from_config({.name = "tiny", .where = "tiny", .text = std::string(config)}),
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
  TimelineClock clock = TimelineClock::kVirtual;
  TrainingOptions training = {};
  RankKind ranks = RankKind::kThreads;
  NamedText cluster = find_cluster("dgx-a100");
  int steps = kSteps;
};

inline TrainingRun run_plan(std::string_view config, const Strategy& strategy,
                            const RunOptions& options = {}) {
  const TinyJob job = tiny_job(config, strategy, options.cluster, options.steps);
  TrainingRequest request = job.request();
  request.clock = options.clock;
  request.options = options.training;
  request.ranks = options.ranks;
  request.steps = options.steps;
  return train(request);
}

}  // namespace meshwright
