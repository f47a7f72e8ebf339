#include "planner/search/space.hpp"

#include <algorithm>
#include <boost/container_hash/hash.hpp>
#include <tuple>

namespace meshwright {
namespace {

int feature_count(const Candidate& c) {
  Strategy s;
  s.degrees = c.layout.degrees;
  s.degrees.chunks = c.pipeline.chunks;
  s.model_parallelism.tensor_overlap = c.layout.tensor_overlap;
  s.model_parallelism.context = c.layout.context;
  s.data_parallelism = c.replication.data;
  return feature_count(s);
}

}  // namespace

std::size_t hash_value(const ParallelDegrees& degrees) {
  std::size_t hash = 0;
  for (const ParallelSize& size : kParallelSizes) boost::hash_combine(hash, degrees.*size.size);
  return hash;
}

ScheduleRequest request_of(const ParallelDegrees& degrees, std::int64_t microbatches) {
  ScheduleRequest request;
  request.devices = degrees.pipeline;
  request.chunks = degrees.chunks;
  request.microbatches = static_cast<int>(microbatches);
  return request;
}

ScheduleRequest request_of(const Strategy& strategy) {
  return request_of(strategy.degrees, microbatch_count(strategy));
}

int model_parts(const Placement& placement) {
  return 1 + *std::max_element(placement.part_of_stage.begin(), placement.part_of_stage.end());
}

std::int64_t microbatches_of(const Layout& layout, const Goal& goal) {
  return goal.global_batch / (std::int64_t{layout.micro_batch} * layout.degrees.data);
}

Strategy strategy_of(const Candidate& candidate, const Goal& goal, const FixedChoices& fixed) {
  Strategy s = strategy_of(fixed);
  const Layout& layout = candidate.layout;
  s.degrees = layout.degrees;
  s.degrees.chunks = candidate.pipeline.chunks;
  s.sequence_parallel = layout.sequence_parallel;
  s.model_parallelism.tensor_overlap = layout.tensor_overlap;
  s.model_parallelism.context = layout.context;
  s.micro_batch = layout.micro_batch;
  s.global_batch = goal.global_batch;
  s.sequence_length = goal.sequence_length;
  if (candidate.pipeline.rule != nullptr) s.schedule = std::string(candidate.pipeline.rule->name);
  s.recompute = candidate.recompute;
  s.zero = candidate.replication.zero;
  s.data_parallelism = candidate.replication.data;
  return s;
}

bool is_simpler(const Candidate& a, const Candidate& b) {
  const auto key = [](const Candidate& c) {
    const DataParallelism& data = c.replication.data;
    const ParallelDegrees& d = c.layout.degrees;
    return std::tuple(feature_count(c), d.tensor, d.pipeline, d.context, d.expert, d.expert_tensor,
                      c.pipeline.chunks, c.layout.sequence_parallel, c.recompute.kind,
                      c.recompute.blocks, c.recompute.blocks_per_stage, c.recompute.modules,
                      c.replication.zero, -c.layout.micro_batch,
                      c.pipeline.rule - schedule_rules().data(), d, c.layout.context,
                      c.layout.tensor_overlap, data.buckets.rule, data.overlap_gather,
                      !data.reshard_after_forward, data.shard_ranks, c.pipeline.relief);
  };
  return key(a) < key(b);
}

Dtype default_dtype(const Cluster& cluster) {
  for (const Dtype dtype : {Dtype::kBf16, Dtype::kFp16})
    if (std::ranges::all_of(cluster.groups, [&](const NodeGroup& group) {
          const DeviceModel& device = cluster.devices.at(cluster.nodes.at(group.node).device);
          return device.peak[static_cast<std::size_t>(dtype)].has_value();
        }))
      return dtype;
  return Dtype::kFp32;
}

std::vector<Candidate> SearchSpace::candidates() const {
  std::vector<Candidate> all;
  for (const Branch& branch : branches)
    for (const PipelineChoice& pipeline : pipelines(branch))
      for (const Recompute& recompute : recomputes)
        for (const Replication& replication : replications(branch))
          all.push_back({branch.layout, pipeline, recompute, replication});
  return all;
}

}  // namespace meshwright
