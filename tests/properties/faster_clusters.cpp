#include "tests/properties/faster_clusters.hpp"

#include <utility>

#include "simulator/cost/forwarded_costs.hpp"

namespace meshwright {
namespace {

constexpr double kFaster = 1.5;

/// Refers to `base`.
class FasterLinks : public ForwardedCosts {
 public:
  using ForwardedCosts::ForwardedCosts;

  Seconds time_of(const Kernel& kernel) const override { return base_.time_of(kernel); }
  Seconds time_of(const Collective& collective) const override {
    return base_.time_of(collective) / kFaster;
  }
  TransferCost cost_of(const Transfer& transfer) const override {
    const TransferCost cost = base_.cost_of(transfer);
    return {.latency = cost.latency, .occupancy = cost.occupancy / kFaster};
  }
  const CostModel& on_nodes(std::int32_t node_kind) const override {
    const CostModel& base = base_.on_nodes(node_kind);
    if (&base == &base_) return *this;
    for (const std::unique_ptr<FasterLinks>& known : kinds_)
      if (&known->base_ == &base) return *known;
    kinds_.push_back(std::make_unique<FasterLinks>(base));
    return *kinds_.back();
  }

 private:
  mutable std::vector<std::unique_ptr<FasterLinks>> kinds_;
};

template <class Edit>
FasterCluster changed(std::string change, const Cluster& cluster, const Edit& edit) {
  FasterCluster faster{.change = std::move(change), .cluster = cluster};
  for (auto& [name, node] : faster.cluster.nodes) edit(faster.cluster, node);
  return faster;
}

}  // namespace

std::unique_ptr<CostModel> with_faster_links(const CostModel& base) {
  return std::make_unique<FasterLinks>(base);
}

std::vector<FasterCluster> faster_clusters(const Cluster& cluster) {
  std::vector<FasterCluster> all;
  all.push_back(changed("less latency", cluster, [](Cluster& c, NodeModel& node) {
    node.local.latency = node.local.latency / kFaster;
    c.fabric.latency = c.fabric.latency / kFaster;
  }));
  all.push_back(changed("1.5 times the FLOP rate", cluster, [](Cluster& c, NodeModel& node) {
    for (auto& peak : c.devices.at(node.device).peak)
      if (peak) peak = *peak * kFaster;
  }));
  all.push_back(changed("1.5 times the memory bandwidth", cluster, [](Cluster& c, NodeModel& node) {
    BytesPerSecond& rate = c.devices.at(node.device).memory_bandwidth;
    rate = rate * kFaster;
    if (node.host) node.host->memory_bandwidth = node.host->memory_bandwidth * kFaster;
  }));
  all.push_back(changed("faster launches", cluster, [](Cluster& c, NodeModel& node) {
    Seconds& launch = c.devices.at(node.device).launch_overhead;
    launch = launch / kFaster;
  }));
  all.push_back(changed("twice the memory", cluster, [](Cluster& c, NodeModel& node) {
    Bytes& memory = c.devices.at(node.device).memory;
    memory = memory + memory;
  }));
  all.back().keeps_times = true;
  return all;
}

}  // namespace meshwright
