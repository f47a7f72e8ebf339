#include "simulator/cost/mixed_cost_model.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/check.hpp"
#include "simulator/cost/device_cost_model.hpp"
#include "simulator/cost/forwarded_costs.hpp"

namespace meshwright {
namespace {

/// Nodes of one type in a job whose nodes differ in size. Process groups are described as on the
/// largest nodes: those with fewer devices have fewer ranks and groups each.
class SmallerNodes final : public ForwardedCosts {
 public:
  SmallerNodes(const CostModel& base, int devices) : ForwardedCosts(base), devices_(devices) {}

  using ForwardedCosts::time_of;
  Seconds time_of(const Collective& collective) const override {
    Collective fitted = collective;
    GroupShape& group = fitted.group;
    group.nodes = std::max(group.nodes, divide_up(group.ranks, devices_));
    const int ranks_in_node = divide_up(group.ranks, group.nodes);
    group.groups_per_node = std::min(group.groups_per_node, devices_ / ranks_in_node);
    return base_.time_of(fitted);
  }
  TransferCost cost_of(const Transfer& transfer) const override {
    Transfer fitted = transfer;
    fitted.flows_per_node = std::min(fitted.flows_per_node, devices_);
    return base_.cost_of(fitted);
  }

 private:
  int devices_;  ///< per node
};

class MixedCostModel final : public CostModel {
 public:
  MixedCostModel(const Cluster& cluster, const Trainer& trainer) {
    std::vector<const CostModel*> kinds;
    for (const NodeGroup& group : cluster.groups) {
      Cluster alone = cluster;
      alone.groups = {group};
      owned_.push_back(make_device_cost_model(alone, trainer));
      kinds.push_back(owned_.back().get());
    }
    fit(cluster, std::move(kinds));
  }
  MixedCostModel(const Cluster& cluster, std::vector<const CostModel*> kinds) {
    fit(cluster, std::move(kinds));
  }

  Seconds time_of(const Kernel& kernel) const override {
    Seconds most;
    for (const CostModel* kind : kinds_) most = std::max(most, kind->time_of(kernel));
    return most;
  }
  /// Priced as if all nodes were of one type.
  Seconds time_of(const Collective& collective) const override {
    Seconds most;
    for (const CostModel* kind : kinds_) most = std::max(most, kind->time_of(collective));
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
  void fit(const Cluster& cluster, std::vector<const CostModel*> kinds) {
    std::vector<int> devices;
    for (const NodeGroup& group : cluster.groups)
      devices.push_back(cluster.nodes.at(group.node).device_count);
    const int most = *std::ranges::max_element(devices);
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      if (devices[k] < most) {
        owned_.push_back(std::make_unique<SmallerNodes>(*kinds[k], devices[k]));
        kinds[k] = owned_.back().get();
      }
    }
    kinds_ = std::move(kinds);
  }

  std::vector<std::unique_ptr<CostModel>> owned_;
  std::vector<const CostModel*> kinds_;  ///< by node group
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
