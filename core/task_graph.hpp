/// Every compute task, collective, send and receive of every rank, with dependencies: what the
/// simulator times and the executor carries out.
///
/// Laid out for speed. A Task is 20 bytes and says only where it stands; what is to be done is a
/// Work, shared by all tasks that do the same (all micro-batches of a stage). Invariants, proved by
/// check_task_graph():
///   - tasks stand in a topological order: dependencies and the predecessor on the stream come
///   first
///   - the order of a stream (rank, stream) is the order of its tasks in the vector
///   - a receive names the send it belongs to, which comes first, with the same micro-batch
///   - the members of a collective stand next to each other, one per rank
///   - what tasks acquire is released: activations end where they began
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.hpp"
#include "core/kernel.hpp"
#include "core/memory_amounts.hpp"
#include "core/plan.hpp"

namespace meshwright {

/// Tasks of one stream run one after another, in order; streams of a rank run side by side.
enum class Stream : std::uint8_t {
  kCompute,
  kSendNext,  ///< to the next device of the pipeline (wrapping round)
  kSendPrevious,
  kReceiveNext,
  kReceivePrevious,
  kTensor,
  kContext,
  kExpert,
  kData,        ///< gradients
  kParameters,  ///< parameters on their way, beside gradients
  kToHost,
  kFromHost,
  kHost  ///< work of the processor
};
inline constexpr int kStreamCount = 13;
std::string_view name_of(Stream stream);

enum class TaskKind : std::uint8_t {
  kForward,
  kBackward,  ///< input and weight gradients
  kBackwardInput,
  kBackwardWeight,
  kOptimizer,
  kCollective,
  kSend,
  kReceive
};
inline constexpr int kTaskKindCount = 8;
std::string_view name_of(TaskKind kind);  ///< "F", "B", "I", "W", "optimizer", …

struct Task {
  WorkId work;
  std::int32_t rank = 0;        ///< index in TaskGraph::ranks
  std::int32_t microbatch = 0;  ///< -1: belongs to the whole step
  std::int16_t stage = 0;       ///< -1: belongs to the rank
  TaskKind kind = TaskKind::kForward;
  Stream stream = Stream::kCompute;
  std::int32_t partner = -1;  ///< receive: its send. collective: index in TaskGraph::collectives
  friend bool operator==(const Task&, const Task&) = default;
};

/// One layer (or the like) in one pass, in the order in which it is carried out on the compute
/// stream; collectives inside it block.
struct WorkPart {
  std::string name;
  std::vector<Step> steps;
  bool recompute = false;  ///< forward work done again for the backward pass
  friend bool operator==(const WorkPart&, const WorkPart&) = default;
};
struct WorkPartUse {
  std::int32_t part = 0;   ///< in TaskGraph::parts
  std::int32_t count = 1;  ///< times in a row
  friend bool operator==(const WorkPartUse&, const WorkPartUse&) = default;
};

struct Work {
  TaskKind kind = TaskKind::kForward;
  std::vector<WorkPartUse> parts;  ///< compute tasks
  Collective collective;           ///< kCollective
  Transfer transfer;               ///< kSend, kReceive
  MemoryAmounts acquired;          ///< when the task starts, and kept
  MemoryAmounts released;          ///< when the task ends
  MemoryAmounts transient;         ///< while the task runs only
  /// Index in Cluster::groups of the nodes that carry it out, where the job has several kinds; -1:
  /// all alike, or ranks of several kinds together (the slowest decides).
  std::int32_t node_kind = -1;
  friend bool operator==(const Work&, const Work&) = default;
};

/// Members stand at tasks [first, first + count).
struct CollectiveMembers {
  std::int32_t first = 0, count = 0;
  friend bool operator==(const CollectiveMembers&, const CollectiveMembers&) = default;
};

struct RankInfo {
  RankId rank;  ///< in the whole job
  RankCoordinate coordinate;
  DeviceId device;
  std::int32_t multiplicity = 1;  ///< ranks it stands for, itself counted
  MemoryAmounts resident;         ///< weights, gradients, optimizer state, fixed buffers, reserved
  friend bool operator==(const RankInfo&, const RankInfo&) = default;
};

struct TaskGraph {
  std::vector<RankInfo> ranks;
  std::vector<WorkPart> parts;
  std::vector<Work> works;
  std::vector<Task> tasks;
  std::vector<std::int32_t> dependency_begin;  ///< tasks.size() + 1 offsets into `dependencies`
  std::vector<TaskId> dependencies;            ///< beside the predecessor on the same stream
  std::vector<CollectiveMembers> collectives;
  friend bool operator==(const TaskGraph&, const TaskGraph&) = default;

  std::span<const TaskId> dependencies_of(TaskId task) const {
    const auto begin = static_cast<std::size_t>(dependency_begin[task.index()]);
    const auto end = static_cast<std::size_t>(dependency_begin[task.index() + 1]);
    return {dependencies.data() + begin, end - begin};
  }
};

/// A task's name that does not depend on how the graph was lowered (folded or all ranks): what
/// predicted and measured timelines are joined on. "r12.compute.s3.F7", and "#2" for the third
/// task that would have the same name.
std::string stable_name(const TaskGraph& graph, TaskId task);
/// All of them, by task; linear.
std::vector<std::string> stable_names(const TaskGraph& graph);

/// Every broken invariant, in words (at most 20). Empty: sound.
std::vector<std::string> check_task_graph(const TaskGraph& graph);

}  // namespace meshwright
