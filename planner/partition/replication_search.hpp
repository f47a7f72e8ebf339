/// The search of partition_with_replication().
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/base/indices.hpp"
#include "core/model/replication_problem.hpp"
#include "planner/partition/down_sets.hpp"
#include "planner/partition/replication_partition.hpp"

namespace meshwright {

inline double number(Bytes bytes) { return static_cast<double>(bytes.value); }

/// A node on a tensor-parallel degree, with its fastest variant and what the other one changes.
struct NodeCost {
  std::int32_t fastest = 0;
  double time = 0, parameters = 0, memory_per_inflight = 0, memory = 0;
  double other_time = 0, other_memory_per_inflight = 0, other_memory = 0;  ///< differences
  bool is_possible = false;
};

/// A stage between two down-sets on one tensor-parallel degree, with the fastest variants.
struct StageCost {
  std::int32_t begin = 0, end = 0;
  int degree = 0;      ///< index in all degrees
  double divided = 0;  ///< seconds that data parallelism divides
  double reduced = 0;  ///< seconds of the all-reduce at infinite degree
  double memory_per_inflight = 0, memory = 0;

  double time(int data) const { return reduced + (divided - reduced) / data; }
};

/// A choice of variants: nodes that have their other variant.
struct VariantChoice {
  double added_time = 0;  ///< infinite if nothing fits
  std::vector<std::int32_t> others;
};

class ReplicationSearch {
 public:
  ReplicationSearch(const ReplicationProblem& problem, const DownSets& sets);
  /// False if there are too many. Call it once, first.
  bool list_stages();
  std::optional<ReplicationPartition> run();
  /// All work evenly on all devices.
  Seconds least_time() const;

 private:
  /// The last stages, from a down-set on.
  struct Label {
    int sum_of_data = 0;
    int devices = 0;
    double time = 0;
    std::int32_t stage = -1;  ///< index of its first stage; -1: no stages
    int data = 0;
    std::size_t next = 0;  ///< label at the end of that stage
  };

  void add_stages(std::int32_t begin, std::int32_t end);
  void add_work();
  double crossing_bytes(std::size_t degree) const;
  double added_time(std::size_t stage, int inflight);
  VariantChoice choose_variants(const StageCost& stage, int inflight) const;
  void extend(std::size_t stage, double threshold);
  void keep(std::vector<Label>& front, const Label& label) const;
  double find(double threshold);
  double longest_time() const;
  ReplicationPartition result() const;

  const ReplicationProblem& problem_;
  const DownSets& sets_;
  std::vector<int> degrees_;                       ///< all tensor-parallel degrees
  std::vector<std::vector<NodeCost>> costs_;       ///< by degree, node
  std::vector<std::vector<std::size_t>> of_node_;  ///< by degree, node: index in its degrees
  std::vector<int> data_degrees_;
  std::vector<StageCost> stages_;           ///< by begin
  std::vector<std::size_t> first_stage_;    ///< by down-set
  std::vector<double> work_before_;         ///< by down-set: device-seconds, at least
  std::vector<std::vector<Label>> fronts_;  ///< by down-set
  std::vector<Label> found_;                ///< the stages found last, in order
  std::unordered_map<std::uint64_t, double> added_times_;
  struct CrossingEdge {
    const ReplicationEdge* edge;
    bool from_stage;  ///< or into it
  };
  std::vector<std::size_t> inside_;     ///< nodes of the stage that add_stages() prices
  std::vector<CrossingEdge> crossing_;  ///< its edges
};

}  // namespace meshwright
