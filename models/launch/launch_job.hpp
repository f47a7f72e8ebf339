/// What a launch of a training program is made from.
#pragma once

#include <optional>
#include <string>

#include "core/cluster/cluster.hpp"
#include "core/model/model_graph.hpp"
#include "core/plan/plan.hpp"
#include "models/builders/transformer_config.hpp"
#include "models/text/named_text.hpp"

namespace meshwright {

/// A transformer as training programs describe it: its sizes, and values of its config.json that
/// affect neither size nor cost.
struct LaunchModel {
  std::string name;    ///< "llama-3.1-70b"
  std::string family;  ///< HuggingFace model_type
  TransformerConfig shape;
  ModelGraph graph;
  std::optional<std::int64_t> rotary_base = {};  ///< rope_theta; absent: the program's default
  std::optional<double> norm_epsilon = {};
  std::optional<double> rotary_factor = {};  ///< of rope_scaling with rope_type "llama3"
};
/// InputError if the configuration is not that of a transformer.
LaunchModel launch_model(const NamedText& config);

struct LaunchJob {
  Plan plan;
  LaunchModel model;
  std::string cluster_name;
  int nodes = 1, ranks_per_node = 1;
  int compute_capability = 0;  ///< 90: Hopper
  bool compiles = true;        ///< torchtitan: torch.compile
};
/// InputError if the ranks cannot be spread evenly over nodes of the cluster.
LaunchJob launch_job(const Plan& plan, LaunchModel model, const Cluster& cluster,
                     std::string cluster_name);

/// "llama-3.1-70b on dgx-h100: TP8 PP4 DP2 SP, 64 GPUs (8 nodes of 8)".
std::string headline(const LaunchJob& job);

}  // namespace meshwright
