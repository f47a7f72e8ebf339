/// Jobs at random from the built-in models and clusters, the same on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/cluster/cluster.hpp"
#include "core/model/model_graph.hpp"
#include "planner/search/fixed_choices.hpp"

namespace meshwright {

struct AuditedJob {
  std::string model, cluster;
  Goal goal;
};

/// A third are mixtures of experts; all have the memory for their parameters and optimizer state.
class RandomJobs {
 public:
  /// `largest`: devices of a job, at least 8.
  RandomJobs(std::uint64_t seed, int largest);
  AuditedJob next();

 private:
  std::uint64_t draw(std::uint64_t below);
  template <class Item>
  const Item& pick(const std::vector<Item>& items) {
    return items[draw(items.size())];
  }
  int draw_size(const Cluster& cluster);
  std::int64_t draw_batch(int gpus);
  std::int64_t draw_length(const ModelGraph& model);

  std::uint64_t state_;
  int largest_;
  std::vector<std::pair<std::string, ModelGraph>> models_;
  std::vector<std::pair<std::string, Cluster>> clusters_;
};

}  // namespace meshwright
