/// Every compute task, collective, send and receive of every rank, with dependencies: the graph
/// that the simulator times and the executor runs.
///
/// Compact layout: a Task is 20 bytes and holds only its position; its contents are a Work, shared
/// by all tasks that do the same (all micro-batches of a stage). Invariants, verified by
/// check_task_graph():
///   - tasks are in topological order: dependencies and the predecessor on the stream come first
///   - the order of a stream (rank, stream) is the order of its tasks in the vector
///   - a receive refers to its send, which comes first and has the same micro-batch
///   - the members of a collective are adjacent, one per rank
///   - everything that tasks acquire is released: memory ends at the level where it started
///   - the program of a work runs the steps of its parts in order, and acquires and frees every
///     buffer in turn
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ids.hpp"
#include "core/base/kernel.hpp"
#include "core/base/memory_amounts.hpp"
#include "core/base/text_table.hpp"
#include "core/operators/buffers.hpp"
#include "core/plan/plan.hpp"

namespace meshwright {

/// Tasks of one stream run in order, one at a time; the streams of a rank run concurrently.
enum class Stream : std::uint8_t {
  kCompute,
  kSendNext,  ///< to the next pipeline rank (wraps around)
  kSendPrevious,
  kReceiveNext,
  kReceivePrevious,
  kTensor,
  kContext,
  kExpert,
  kData,        ///< gradient reductions and parameter gathers
  kParameters,  ///< those of shard groups inside a node (hybrid sharding); pulls from servers
  kToHost,
  kFromHost,
  kHost,             ///< work of the CPU
  kOutputInputs,     ///< inputs of an output layer sharded over the pipeline ranks
  kOutputReductions  ///< its barriers: softmax statistics and input gradients
};
struct StreamName {
  Stream stream;
  std::string_view name;
  std::optional<Axis> axis = {};  ///< of the collectives that run on it
};
inline constexpr std::array kStreamNames{
    StreamName{Stream::kCompute, "compute"},
    StreamName{Stream::kSendNext, "send-next"},
    StreamName{Stream::kSendPrevious, "send-previous"},
    StreamName{Stream::kReceiveNext, "receive-next"},
    StreamName{Stream::kReceivePrevious, "receive-previous"},
    StreamName{Stream::kTensor, "tensor", Axis::kTensor},
    StreamName{Stream::kContext, "context", Axis::kContext},
    StreamName{Stream::kExpert, "expert", Axis::kExpert},
    StreamName{Stream::kData, "data", Axis::kData},
    StreamName{Stream::kParameters, "parameters", Axis::kData},
    StreamName{Stream::kToHost, "to-host"},
    StreamName{Stream::kFromHost, "from-host"},
    StreamName{Stream::kHost, "host"},
    StreamName{Stream::kOutputInputs, "output-inputs", Axis::kPipeline},
    StreamName{Stream::kOutputReductions, "output-reductions", Axis::kPipeline}};
inline constexpr int kStreamCount = static_cast<int>(kStreamNames.size());
constexpr std::string_view name_of(Stream stream) {
  return kStreamNames[static_cast<std::size_t>(stream)].name;
}
constexpr std::optional<Axis> axis_of(Stream stream) {
  return kStreamNames[static_cast<std::size_t>(stream)].axis;
}
static_assert([] {
  for (int s = 0; s < kStreamCount; ++s)
    if (kStreamNames[static_cast<std::size_t>(s)].stream != static_cast<Stream>(s)) return false;
  return true;
}());

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
/// Neither a collective nor one end of a message.
constexpr bool is_compute(TaskKind kind) {
  return kind != TaskKind::kCollective && kind != TaskKind::kSend && kind != TaskKind::kReceive;
}
/// A forward or backward pass of one micro-batch.
constexpr bool is_pass(TaskKind kind) { return is_compute(kind) && kind != TaskKind::kOptimizer; }
std::string_view name_of(TaskKind kind);  ///< "F", "B", "I", "W", "optimizer", …

struct Task {
  WorkId work;
  std::int32_t rank = 0;        ///< index in TaskGraph::ranks
  std::int32_t microbatch = 0;  ///< -1: not tied to a micro-batch
  std::int16_t stage = 0;       ///< -1: not tied to a stage
  TaskKind kind = TaskKind::kForward;
  Stream stream = Stream::kCompute;
  std::int32_t partner = -1;  ///< receive: its send; collective: index in TaskGraph::collectives
  friend bool operator==(const Task&, const Task&) = default;
};

/// One layer (or similar) in one pass: its steps in execution order on the compute stream.
/// Collectives among the steps block the stream.
struct WorkPart {
  std::string name;
  std::vector<Step> steps;
  bool recompute = false;  ///< forward work repeated for the backward pass
  friend bool operator==(const WorkPart&, const WorkPart&) = default;
};
struct WorkPartUse {
  std::int32_t part = 0;   ///< index in TaskGraph::parts
  std::int32_t count = 1;  ///< number of consecutive repetitions
  friend bool operator==(const WorkPartUse&, const WorkPartUse&) = default;
};

/// One step of a work on a layer of its own. Works of stages that do the same share their parts;
/// their layers, operators and buffers differ.
struct ProgramStep {
  LayerId layer;
  OperatorId op;
  TensorId tensor{-1};    ///< Collective::tensor in this layer
  std::int32_t part = 0;  ///< index in TaskGraph::parts
  std::int32_t step = 0;  ///< index in its steps
  friend bool operator==(const ProgramStep&, const ProgramStep&) = default;
};
/// A pass over layers, step by step, and what happens to the buffers of its micro-batch. An event
/// whose step is steps.size() comes after the last step.
struct WorkProgram {
  std::vector<ProgramStep> steps;
  std::vector<BufferEvent> buffers;
  LayerId lowest_layer{-1};
  /// A pass over a stage may be split into several works: whether this is the first, or the last.
  bool begins_pass = true, ends_pass = true;
  /// One-process data parallelism: the loss of the outputs of all devices, after their passes.
  bool of_gathered_outputs = false;
  friend bool operator==(const WorkProgram&, const WorkProgram&) = default;
};

struct Work {
  TaskKind kind = TaskKind::kForward;
  std::vector<WorkPartUse> parts;  ///< compute tasks
  Collective collective;           ///< kCollective
  Transfer transfer;               ///< kSend, kReceive
  MemoryAmounts acquired;          ///< when the task starts, held beyond its end
  MemoryAmounts released;          ///< when the task ends
  MemoryAmounts transient;         ///< only while the task runs
  /// On heterogeneous clusters, the index in Cluster::groups of the nodes that run it; -1: all
  /// nodes are of one type, or ranks on several node types take part (the slowest one decides).
  std::int32_t node_kind = -1;
  std::int32_t program = -1;  ///< index in TaskGraph::programs; -1: not described step by step
  friend bool operator==(const Work&, const Work&) = default;
};

/// The members are the tasks [first, first + count).
struct CollectiveMembers {
  std::int32_t first = 0, count = 0;
  friend bool operator==(const CollectiveMembers&, const CollectiveMembers&) = default;
};

struct RankInfo {
  RankId rank;  ///< in the whole job
  RankCoordinate coordinate;
  DeviceId device;
  std::int32_t multiplicity = 1;  ///< number of ranks it represents, including itself
  MemoryAmounts resident;         ///< weights, gradients, optimizer state, fixed buffers, reserved
  double allocator_slack = 0;     ///< see TrainerMemory; evaluate() adds it to the peak
  friend bool operator==(const RankInfo&, const RankInfo&) = default;
};

struct TaskGraph {
  std::vector<RankInfo> ranks;
  std::vector<WorkPart> parts;
  std::vector<Work> works;
  std::vector<WorkProgram> programs;  ///< of passes over layers; see LoweringOptions::programs
  std::vector<Task> tasks;
  std::vector<std::int32_t> dependency_begin;  ///< tasks.size() + 1 offsets into `dependencies`
  std::vector<TaskId> dependencies;            ///< without the predecessor on the same stream
  std::vector<CollectiveMembers> collectives;
  friend bool operator==(const TaskGraph&, const TaskGraph&) = default;

  std::span<const TaskId> dependencies_of(TaskId task) const {
    const auto begin = static_cast<std::size_t>(dependency_begin[task.index()]);
    const auto end = static_cast<std::size_t>(dependency_begin[task.index() + 1]);
    return {dependencies.data() + begin, end - begin};
  }
};

/// Of a collective or one end of a message.
inline Axis axis_of(const TaskGraph& graph, const Task& task) {
  const Work& work = graph.works[task.work.index()];
  return task.kind == TaskKind::kCollective ? work.collective.axis : work.transfer.axis;
}

/// The stable name of a task, independent of how the graph was lowered (folded or all ranks);
/// predicted and measured timelines are joined on it. "r12.compute.s3.F7"; further tasks with the
/// same name get a suffix "#2", "#3", ...
std::string stable_name(const TaskGraph& graph, TaskId task);
/// The stable names of all tasks, by task. Linear.
TextTable stable_names(const TaskGraph& graph);

/// Descriptions of all violated invariants (at most 20). Empty if the graph is valid.
std::vector<std::string> check_task_graph(const TaskGraph& graph);

}  // namespace meshwright
