/// The models, clusters and trainers of random jobs.
#pragma once

#include <vector>

#include "core/cluster/cluster.hpp"
#include "core/model/model_graph.hpp"
#include "core/trainer/trainer.hpp"
#include "models/text/named_text.hpp"

namespace meshwright {

/// Presets with few blocks, of every kind of attention and feed-forward layer.
struct ModelPart {
  NamedText config;
  ModelGraph graph;
};
/// Presets of every kind of node, and clusters with rails, switch levels and two node types.
struct ClusterPart {
  NamedText toml;
  Cluster cluster;
};
/// What jobs are made of; loading takes some 0.1 s.
struct JobParts {
  std::vector<ModelPart> models;
  std::vector<ClusterPart> clusters;
  std::vector<Trainer> trainers;
};
JobParts load_job_parts();

}  // namespace meshwright
