#include "planner/search/state_bound.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <variant>

#include "core/plan/parallel_sizes.hpp"

namespace meshwright {
namespace {

Bytes largest_memory(const Cluster& cluster) {
  Bytes largest;
  for (const NodeGroup& group : cluster.groups)
    largest = std::max(largest, cluster.devices.at(cluster.nodes.at(group.node).device).memory);
  return largest;
}

/// Parameter servers and one-process data parallelism keep state elsewhere.
bool keeps_state_on_devices(const FixedChoices& fixed) {
  return !has_servers(fixed.data_parallelism.kind) &&
         fixed.data_parallelism.kind != DataParallelKind::kOneProcess;
}

}  // namespace

StateBound::StateBound(const SearchJob& job, const SearchSpace& space)
    : space_(space),
      capacity_(largest_memory(job.cluster)),
      counts_state_(keeps_state_on_devices(job.fixed)) {
  for (const Tensor& tensor : job.model.tensors) {
    const auto* parameter = std::get_if<ParameterTensor>(&tensor.shape);
    if (parameter == nullptr || !parameter->trained_by_gradient) continue;
    const std::int64_t count = std::accumulate(parameter->shape.begin(), parameter->shape.end(),
                                               std::int64_t{1}, std::multiplies<>());
    (parameter->cut == ParameterCut::kExpert ? expert_ : dense_) += count;
  }
  for (const std::vector<Replication>& replications : space.replication_lists)
    shardings_.push_back(shardings_of(job, replications));
}

std::vector<StateBound::Sharding> StateBound::shardings_of(
    const SearchJob& job, const std::vector<Replication>& replications) const {
  std::vector<Sharding> shardings;
  for (std::size_t i = 0; i < replications.size(); ++i) {
    const Replication& replication = replications[i];
    Candidate candidate;
    candidate.replication = replication;
    const Strategy strategy = strategy_of(candidate, job.goal, job.fixed);
    const Sharding sharding{.replication = i,
                            .state = model_state_bytes(strategy, job.cost_model.memory()),
                            .zero = replication.zero,
                            .shard_ranks = replication.data.shard_ranks,
                            .offloads_optimizer = replication.data.offload_optimizer};
    const bool is_known = std::ranges::any_of(shardings, [&](const Sharding& other) {
      return other.state == sharding.state && other.zero == sharding.zero &&
             other.shard_ranks == sharding.shard_ranks &&
             other.offloads_optimizer == sharding.offloads_optimizer;
    });
    if (!is_known) shardings.push_back(sharding);
  }
  return shardings;
}

/// Rounds down: parameters that few ranks hold evenly.
StateBound::Found StateBound::least_state(const SearchSpace::Branch& branch) const {
  const ParallelDegrees& d = branch.layout.degrees;
  const std::int64_t dense = dense_ / d.tensor;
  const std::int64_t expert_ranks = std::int64_t{d.expert} * d.expert_tensor;
  const std::int64_t expert = expert_ / expert_ranks;
  Found least{.needed = Bytes::max()};
  for (const Sharding& s : shardings_[static_cast<std::size_t>(branch.replications)]) {
    const std::int64_t dense_shards = s.shard_ranks > 0 ? s.shard_ranks : replica_count(d);
    const std::int64_t expert_shards =
        s.shard_ranks > 0 ? s.shard_ranks : stage_rank_count(d) / expert_ranks;
    const std::int64_t all = dense + expert;
    const std::int64_t share = dense / dense_shards + expert / expert_shards;
    std::int64_t bytes = s.state.weights * (s.zero >= 3 ? share : all) +
                         s.state.gradients * (s.zero >= 2 ? share : all);
    if (!s.offloads_optimizer) bytes += s.state.optimizer * (s.zero >= 1 ? share : all);
    const Bytes of_mean_rank(bytes / d.pipeline);
    if (of_mean_rank < least.needed) least = {of_mean_rank, &s};
  }
  return least;
}

std::optional<MemoryShortfall> StateBound::shortfall_of(const SearchSpace::Branch& branch) const {
  if (!counts_state_) return std::nullopt;
  const Bytes needed = least_state(branch).needed;
  if (needed <= capacity_) return std::nullopt;
  return MemoryShortfall{.needed = needed, .capacity = capacity_, .position = 0};
}

const Replication& StateBound::leanest(const SearchSpace::Branch& branch) const {
  return space_.replications(branch)[least_state(branch).sharding->replication];
}

}  // namespace meshwright
