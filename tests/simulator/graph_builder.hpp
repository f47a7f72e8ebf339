/// Hand-made task graphs and prices, without models, clusters or cost models: every duration in a
/// test is a number in the test.
#pragma once

#include <string_view>
#include <vector>

#include "core/cost/cost_model.hpp"
#include "core/graph/task_graph.hpp"
#include "core/schedule/schedule.hpp"
#include "core/schedule/stage_times.hpp"

namespace meshwright {

struct TaskPlace {
  int rank = 0;
  Stream stream = Stream::kCompute;
  int stage = 0;
  int microbatch = 0;
};

struct GraphBuilder {
  TaskGraph graph;
  std::vector<WorkPrice> prices;  ///< by work

  explicit GraphBuilder(int ranks = 0) {
    graph.dependency_begin = {0};
    for (int r = 0; r < ranks; ++r) add_rank();
  }
  int add_rank(int multiplicity = 1);  ///< on the device of the same number
  /// All of the time is one GEMM.
  WorkId add_compute(TaskKind kind, Ticks duration);
  /// Returns the work of the send; that of the receive follows it.
  WorkId add_message(Bytes bytes, Ticks occupancy, Ticks latency);
  WorkId add_collective_work(Axis axis, Ticks duration);

  TaskId add_task(WorkId work, const TaskPlace& place, const std::vector<TaskId>& after = {});
  /// Adds the receive of a send's message at `place`.
  TaskId add_receive(TaskId send, const TaskPlace& place);
  struct Transfer {
    TaskId send, receive;
  };
  /// A message to the next stage; its send waits for `after`.
  Transfer add_transfer(WorkId message, int from, int to, const std::vector<TaskId>& after = {});
  /// One member per rank, on `stream`, in the order of `ranks`; member i waits for after[i].
  std::vector<TaskId> add_collective(WorkId work, Stream stream, const std::vector<int>& ranks,
                                     const std::vector<std::vector<TaskId>>& after);
};

/// Cost of a message between two devices of a pipeline.
struct MessageCost {
  Bytes bytes{1};
  Ticks occupancy, latency;
};

/// Compute tasks, sends and receives of one pipeline, one rank per device. Stages of one device
/// pass on their results without a message. No overlapped pairs.
GraphBuilder pipeline_graph(const Schedule& schedule, const StageTimes& times,
                            const MessageCost& message = {});

/// Size of a pipeline.
struct PipelineSize {
  int devices = 1, microbatches = 1, chunks = 1;
};
/// A schedule by name; it must support the size.
Schedule schedule_of(std::string_view name, const PipelineSize& size);

}  // namespace meshwright
