#include "planner/partition/partition_messages.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <utility>

#include "core/base/indices.hpp"

namespace meshwright {

PartitionMessages::PartitionMessages(const LoweredPartition& partition,
                                     std::vector<std::int32_t> first_rank, FoldedGraph& folded)
    : partition_(partition),
      first_rank_(std::move(first_rank)),
      folded_(folded),
      from_earlier_(first_rank_.size()),
      to_later_(first_rank_.size()) {
  find_messages();
}

void PartitionMessages::find_messages() {
  std::vector<std::int32_t> stage_of_node(partition_.graph.nodes.size());
  const std::vector<ReplicatedStage>& stages = partition_.training.partition.stages;
  for (std::size_t s = 0; s < stages.size(); ++s)
    for (const std::int32_t node : stages[s].nodes)
      stage_of_node[to_index(node)] = static_cast<std::int32_t>(s);
  std::map<std::int32_t, std::pair<Bytes, std::set<std::int32_t>>> stages_of_tensor;
  for (const KernelGraphEdge& edge : partition_.graph.edges) {
    auto& [bytes, readers] = stages_of_tensor[edge.tensor];
    bytes = std::max(bytes, edge.bytes);
    readers.insert(stage_of_node[to_index(edge.source)]);
    readers.insert(stage_of_node[to_index(edge.target)]);
  }
  std::map<std::pair<std::int32_t, std::int32_t>, Bytes> between;
  for (const auto& [tensor, use] : stages_of_tensor)
    for (auto stage = use.second.begin(); std::next(stage) != use.second.end(); ++stage)
      between[{*stage, *std::next(stage)}] += use.first;
  for (const auto& [ends, bytes] : between) {
    to_later_[to_index(ends.first)].push_back(messages_.size());
    from_earlier_[to_index(ends.second)].push_back(messages_.size());
    messages_.push_back({ends.first, ends.second, bytes});
  }
  sent_.assign(2 * messages_.size() * to_index(partition_.training.problem.microbatches),
               TaskId(-1));
}

std::int32_t PartitionMessages::rank_of(std::size_t stage, std::int32_t microbatch) const {
  return first_rank_[stage] + microbatch % partition_.training.partition.stages[stage].data;
}

bool PartitionMessages::is_ready(std::size_t stage, const PartitionPass& pass) const {
  return std::ranges::all_of(inputs_of(stage, pass), [&](std::size_t message) {
    return sent_[place_of(message, pass)].value >= 0;
  });
}

std::vector<TaskId> PartitionMessages::receive_inputs(std::size_t stage,
                                                      const PartitionPass& pass) {
  std::vector<TaskId> inputs;
  for (const std::size_t message : inputs_of(stage, pass)) {
    Task task = task_of(TaskKind::kReceive, message, pass);
    task.stream = pass.is_forward ? Stream::kReceivePrevious : Stream::kReceiveNext;
    task.partner = sent_[place_of(message, pass)].value;
    inputs.push_back(append_task(folded_.graph, task, {}));
  }
  return inputs;
}

void PartitionMessages::send_outputs(std::size_t stage, const PartitionPass& pass, TaskId after) {
  for (const std::size_t message : outputs_of(stage, pass)) {
    Task task = task_of(TaskKind::kSend, message, pass);
    task.stream = pass.is_forward ? Stream::kSendNext : Stream::kSendPrevious;
    sent_[place_of(message, pass)] = append_task(folded_.graph, task, {&after, 1});
  }
}

std::size_t PartitionMessages::place_of(std::size_t message, const PartitionPass& pass) const {
  return (2 * message + (pass.is_forward ? 0 : 1)) *
             to_index(partition_.training.problem.microbatches) +
         to_index(pass.microbatch);
}

WorkId PartitionMessages::work_of(const Task& task, Bytes bytes, bool crosses_nodes) {
  const auto [known, is_new] = works_.try_emplace({task.kind, bytes, crosses_nodes}, WorkId(-1));
  if (is_new) {
    Work work;
    work.kind = task.kind;
    work.transfer = {
        .bytes = bytes, .crosses_nodes = crosses_nodes, .flows_per_node = partition_.tensor};
    known->second = append_work(folded_.graph, std::move(work));
  }
  return known->second;
}

/// One end of a message; a gradient goes from its target to its source.
Task PartitionMessages::task_of(TaskKind kind, std::size_t message, const PartitionPass& pass) {
  const Message& m = messages_[message];
  const bool is_at_source = pass.is_forward == (kind == TaskKind::kSend);
  const std::array<std::int32_t, 2> ranks{rank_of(to_index(m.source), pass.microbatch),
                                          rank_of(to_index(m.target), pass.microbatch)};
  const auto node_of_rank = [&](std::int32_t rank) {
    return node_index_of(partition_.cluster, DeviceId(rank * partition_.tensor));
  };
  Task task;
  task.kind = kind;
  task.rank = ranks[is_at_source ? 0 : 1];
  task.microbatch = pass.microbatch;
  task.stage = static_cast<std::int16_t>(is_at_source ? m.source : m.target);
  task.work = work_of(task, m.bytes, node_of_rank(ranks[0]) != node_of_rank(ranks[1]));
  return task;
}

}  // namespace meshwright
