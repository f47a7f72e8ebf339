/// Hardware that is better than another in one respect.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/cluster/cluster.hpp"
#include "core/cost/cost_model.hpp"

namespace meshwright {

struct FasterCluster {
  std::string change;
  Cluster cluster;
  bool keeps_times = false;  ///< only memory differs
};
/// Less latency, a faster device, faster memory, faster launches, more memory.
std::vector<FasterCluster> faster_clusters(const Cluster& cluster);

/// `base` with all collectives and messages in two thirds of their time. Not by the bandwidth of
/// the cluster: NCCL's tuner chooses algorithm and protocol by an estimate of its own, and near the
/// size where a higher bandwidth changes the choice, the other one can take longer.
std::unique_ptr<CostModel> with_faster_links(const CostModel& base);

}  // namespace meshwright
