#include "simulator/cost/mixed_cost_model.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/check.hpp"
#include "simulator/cost/device_cost_model.hpp"

namespace meshwright {
namespace {

class MixedCostModel final : public CostModel {
 public:
  MixedCostModel(const Cluster& cluster, const Trainer& trainer) {
    for (const NodeGroup& group : cluster.groups) {
      Cluster alone = cluster;
      alone.groups = {group};
      owned_.push_back(make_device_cost_model(alone, trainer));
      kinds_.push_back(owned_.back().get());
      devices_.push_back(cluster.nodes.at(group.node).device_count);
    }
  }
  MixedCostModel(const Cluster& cluster, std::vector<const CostModel*> kinds)
      : kinds_(std::move(kinds)) {
    for (const NodeGroup& group : cluster.groups)
      devices_.push_back(cluster.nodes.at(group.node).device_count);
  }

  Seconds time_of(const Kernel& kernel) const override {
    Seconds most;
    for (const CostModel* kind : kinds_) most = std::max(most, kind->time_of(kernel));
    return most;
  }
  /// Priced as if all nodes were of one type; types with fewer devices per node need more nodes for
  /// the same number of ranks.
  Seconds time_of(const Collective& collective) const override {
    Seconds most;
    for (std::size_t k = 0; k < kinds_.size(); ++k) {
      Collective asked = collective;
      GroupShape& group = asked.group;
      group.nodes = std::max(group.nodes, divide_up(group.ranks, devices_[k]));
      const int ranks_in_node = divide_up(group.ranks, group.nodes);
      group.groups_per_node = std::min(group.groups_per_node, devices_[k] / ranks_in_node);
      most = std::max(most, kinds_[k]->time_of(asked));
    }
    return most;
  }

  TransferCost cost_of(const Transfer& transfer) const override {
    TransferCost most = kinds_.front()->cost_of(transfer);
    for (const CostModel* kind : kinds_) {
      const TransferCost cost = kind->cost_of(transfer);
      most.latency = std::max(most.latency, cost.latency);
      most.occupancy = std::max(most.occupancy, cost.occupancy);
    }
    return most;
  }

  double multiprocessor_share_of(const Collective& collective) const override {
    double most = 0;
    for (const CostModel* kind : kinds_)
      most = std::max(most, kind->multiprocessor_share_of(collective));
    return most;
  }

  HostTimes host_times() const override { return kinds_.front()->host_times(); }
  double launches_of(const Kernel& kernel) const override {
    return kinds_.front()->launches_of(kernel);
  }
  TrainerMemory memory() const override { return kinds_.front()->memory(); }

  const CostModel& on_nodes(std::int32_t node_kind) const override {
    if (node_kind < 0) return *this;
    MW_CHECK(static_cast<std::size_t>(node_kind) < kinds_.size());
    return *kinds_[static_cast<std::size_t>(node_kind)];
  }

  std::string provenance() const override {
    std::string text;
    for (const CostModel* kind : kinds_) text += (text.empty() ? "" : "; ") + kind->provenance();
    return text;
  }

 private:
  std::vector<std::unique_ptr<CostModel>> owned_;
  std::vector<const CostModel*> kinds_;  ///< by node group
  std::vector<int> devices_;             ///< per node, by node group
};

}  // namespace

std::unique_ptr<CostModel> make_mixed_cost_model(const Cluster& cluster, const Trainer& trainer) {
  MW_CHECK(!cluster.groups.empty());
  return std::make_unique<MixedCostModel>(cluster, trainer);
}

std::unique_ptr<CostModel> make_mixed_cost_model(const Cluster& cluster,
                                                 std::vector<const CostModel*> kinds) {
  MW_CHECK(!kinds.empty() && kinds.size() == cluster.groups.size());
  return std::make_unique<MixedCostModel>(cluster, std::move(kinds));
}

}  // namespace meshwright
