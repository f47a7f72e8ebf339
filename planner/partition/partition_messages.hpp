/// Messages between the stages of a partition: what they carry, and their tasks.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "core/lowering/folded_graph.hpp"
#include "planner/partition/lower_partition.hpp"

namespace meshwright {

/// A forward or backward pass of one micro-batch.
struct PartitionPass {
  bool is_forward = true;
  std::int32_t microbatch = 0;
};

/// Micro-batch b runs on replica b mod d of a stage. A tensor goes from reader to reader, its
/// gradient back; all tensors between two stages are one message.
class PartitionMessages {
 public:
  /// `first_rank` of every stage. Refers to its arguments.
  PartitionMessages(const LoweredPartition& partition, std::vector<std::int32_t> first_rank,
                    FoldedGraph& folded);

  std::int32_t rank_of(std::size_t stage, std::int32_t microbatch) const;
  /// True if all inputs of the pass have been sent.
  bool is_ready(std::size_t stage, const PartitionPass& pass) const;
  /// Receives stand in the order in which passes need them. Returns the tasks.
  std::vector<TaskId> receive_inputs(std::size_t stage, const PartitionPass& pass);
  void send_outputs(std::size_t stage, const PartitionPass& pass, TaskId after);

 private:
  struct Message {
    std::int32_t source = 0, target = 0;  ///< stages
    Bytes bytes;
  };
  using Indices = std::vector<std::size_t>;
  const Indices& inputs_of(std::size_t stage, const PartitionPass& pass) const {
    return pass.is_forward ? from_earlier_[stage] : to_later_[stage];
  }
  const Indices& outputs_of(std::size_t stage, const PartitionPass& pass) const {
    return pass.is_forward ? to_later_[stage] : from_earlier_[stage];
  }
  void find_messages();
  std::size_t place_of(std::size_t message, const PartitionPass& pass) const;
  WorkId work_of(const Task& task, Bytes bytes, bool crosses_nodes);
  Task task_of(TaskKind kind, std::size_t message, const PartitionPass& pass);

  const LoweredPartition& partition_;
  std::vector<std::int32_t> first_rank_;
  FoldedGraph& folded_;
  std::vector<Message> messages_;
  std::vector<Indices> from_earlier_, to_later_;  ///< messages by stage
  std::vector<TaskId> sent_;                      ///< -1: not yet
  std::map<std::tuple<TaskKind, Bytes, bool>, WorkId> works_;
};

}  // namespace meshwright
