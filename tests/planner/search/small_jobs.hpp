/// Jobs small enough to simulate every candidate.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/cluster/cluster.hpp"
#include "core/model/model_graph.hpp"
#include "models/load/load.hpp"
#include "planner/search/candidate_costs.hpp"
#include "planner/search/search_job.hpp"
#include "planner/search/space.hpp"
#include "simulator/cost/device_cost_model.hpp"
#include "simulator/predict/predict.hpp"

namespace meshwright {

/// 6 blocks of hidden size 1024 with 8 heads.
inline ModelGraph small_dense_model() {
  return model_from_config({.name = "small", .where = "small.json", .text = R"({
    "model_type": "llama", "hidden_size": 1024, "intermediate_size": 2816,
    "num_hidden_layers": 6, "num_attention_heads": 8, "num_key_value_heads": 4,
    "vocab_size": 16000, "max_position_embeddings": 2048})"});
}

/// 4 blocks with 4 experts, 2 per token.
inline ModelGraph small_expert_model() {
  return model_from_config({.name = "small-moe", .where = "small-moe.json", .text = R"({
    "model_type": "mixtral", "hidden_size": 512, "intermediate_size": 1024,
    "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 8,
    "num_local_experts": 4, "num_experts_per_tok": 2,
    "vocab_size": 8000, "max_position_embeddings": 2048})"});
}

/// DGX A100 nodes with `memory` per device and no reserved memory.
inline Cluster nodes_with_memory(Bytes memory) {
  Cluster cluster = cluster_from_toml(find_cluster("dgx-a100"));
  for (auto& [name, device] : cluster.devices) {
    device.memory = memory;
    device.reserved_memory = Bytes(0);
  }
  return cluster;
}

inline constexpr Goal kSmallGoal{.gpus = 8, .global_batch = 16, .sequence_length = 512};
inline constexpr Bytes kPlenty(80'000'000'000);

/// Nodes of four A100, and of four devices with `share` of their rates and `memory`.
inline Cluster fast_and_slow(int fast, int slow, double share, Bytes memory = kPlenty) {
  Cluster cluster = nodes_with_memory(kPlenty);
  NodeModel node = cluster.nodes.begin()->second;
  DeviceModel device = cluster.devices.at(node.device);
  node.device_count = 4;
  cluster.nodes = {{"fast", node}};
  for (auto& peak : device.peak)
    if (peak) peak = *peak * share;
  device.memory_bandwidth = device.memory_bandwidth * share;
  device.memory = memory;
  cluster.devices["slow-device"] = device;
  node.device = "slow-device";
  cluster.nodes["slow"] = node;
  cluster.groups = {{"fast", fast}, {"slow", slow}};
  return cluster;
}

inline constexpr std::size_t kAllCandidates = ~std::size_t{0};

/// A search job and the objects that it refers to.
struct SmallJob {
  ModelGraph model;
  Cluster cluster;
  std::unique_ptr<CostModel> cost_model;
  Goal goal;
  FixedChoices fixed;

  SmallJob(ModelGraph m, Bytes memory, Goal g)
      : SmallJob(std::move(m), nodes_with_memory(memory), g) {}
  SmallJob(ModelGraph m, Cluster c, Goal g)
      : model(std::move(m)),
        cluster(std::move(c)),
        cost_model(make_device_cost_model(cluster)),
        goal(g) {}
  SearchJob job(int threads = 1) const {
    return {model, cluster, *cost_model, goal, fixed, threads};
  }
  SearchResult search(const SearchOptions& options = {}) const {
    return meshwright::search(model, cluster, *cost_model, goal, fixed, options);
  }
  SearchSpace space() const { return make_space(model, cluster, goal, fixed); }
  /// Those that check_plan() accepts; at most `most`, chosen at random.
  std::vector<Candidate> candidates(std::size_t most = kAllCandidates) const {
    std::vector<Candidate> all = space().candidates();
    std::mt19937 random(1);
    std::shuffle(all.begin(), all.end(), random);
    const SearchJob all_of_it = job();
    CandidateCosts costs(all_of_it);
    std::vector<Candidate> valid;
    for (Candidate& candidate : all) {
      if (valid.size() == most) break;
      if (check_plan(costs.plan_of(candidate), model, cluster).empty())
        valid.push_back(std::move(candidate));
    }
    return valid;
  }
  Evaluation evaluate(const Plan& plan) const {
    return predict({plan, model, cluster, *cost_model}).evaluation;
  }
};

/// Every bound of a candidate, from its layout to the candidate itself.
struct CandidateBounds {
  Ticks layout, pipeline, schedule, candidate;
};
inline CandidateBounds bounds_of(const Candidate& candidate, CandidateCosts& costs) {
  const SharedLayers layers = costs.layers(candidate.layout, candidate.recompute);
  const bool shares_ends = candidate.pipeline.rule->output_barriers > 0;
  CandidateBounds bounds;
  bounds.layout = costs.layout_bound(candidate.layout, *layers, candidate.recompute, shares_ends);
  bounds.pipeline =
      costs.pipeline_bound(candidate.layout, layers, candidate.pipeline, candidate.recompute);
  bounds.schedule = std::max(bounds.pipeline, costs.schedule_time(candidate));
  bounds.candidate = costs.candidate_bound(candidate, bounds.schedule);
  return bounds;
}
/// Each is closer than the one before.
inline bool are_ascending(const CandidateBounds& bounds) {
  return bounds.layout <= bounds.pipeline && bounds.schedule <= bounds.candidate;
}

/// What tells candidates of a test apart.
inline std::string text_of(const Plan& plan) {
  const Strategy& s = plan.strategy;
  return fmt::format("{} tp {} pp {} v {} zero {} bucket {} micro-batch {}", s.schedule,
                     s.degrees.tensor, s.degrees.pipeline, s.degrees.chunks, s.zero,
                     to_text(s.data_parallelism.buckets), s.micro_batch);
}

}  // namespace meshwright
