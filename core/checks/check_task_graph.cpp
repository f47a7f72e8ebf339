#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/graph/task_graph.hpp"

namespace meshwright {
namespace {

constexpr std::size_t kMostFindings = 20;

class TaskGraphChecks {
 public:
  explicit TaskGraphChecks(const TaskGraph& graph) : graph_(graph) {}

  /// Later checks rely on the indices verified by earlier ones.
  std::vector<std::string> run() {
    check_offsets();
    if (found_.empty()) check_indices();
    if (found_.empty()) check_works();
    if (found_.empty()) check_programs();
    if (!found_.empty()) return std::move(found_);
    check_order();
    check_kinds_and_streams();
    check_messages();
    check_collectives();
    check_memory();
    return std::move(found_);
  }

 private:
  template <class... Arguments>
  void report(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    if (found_.size() < kMostFindings)
      found_.push_back(fmt::format(format, std::forward<Arguments>(arguments)...));
  }

  template <class Index, class List>
  static bool in_range(Index index, const List& list) {
    return index >= 0 && static_cast<std::size_t>(index) < list.size();
  }

  const Work& work_of(const Task& task) const { return graph_.works[task.work.index()]; }

  void check_offsets() {
    const std::vector<std::int32_t>& begin = graph_.dependency_begin;
    if (begin.size() != graph_.tasks.size() + 1) {
      report("expected {} dependency offsets, got {}", graph_.tasks.size() + 1, begin.size());
      return;
    }
    if (begin.front() != 0 || begin.back() != static_cast<std::int32_t>(graph_.dependencies.size()))
      report("dependency offsets range from {} to {}, expected 0 to {}", begin.front(),
             begin.back(), graph_.dependencies.size());
    for (std::size_t i = 0; i + 1 < begin.size(); ++i)
      if (begin[i] > begin[i + 1]) report("dependency offsets of task {} decrease", i);
  }

  void check_indices() {
    for (std::size_t i = 0; i < graph_.tasks.size(); ++i) {
      const Task& task = graph_.tasks[i];
      if (!in_range(task.work.value, graph_.works))
        report("task {}: work {} is out of range ({} works)", i, task.work.value,
               graph_.works.size());
      if (!in_range(task.rank, graph_.ranks))
        report("task {}: rank {} is out of range ({} ranks)", i, task.rank, graph_.ranks.size());
    }
  }

  void check_works() {
    for (std::size_t i = 0; i < graph_.works.size(); ++i)
      for (const WorkPartUse& use : graph_.works[i].parts)
        if (!in_range(use.part, graph_.parts) || use.count < 1)
          report("work {}: invalid use of part {} ({} parts), {} times", i, use.part,
                 graph_.parts.size(), use.count);
  }

  /// A program runs the steps of its work's parts in their order. Its events are in the order of
  /// its steps, and acquire and free every buffer in turn; which buffers are live at its start
  /// depends on the passes before it.
  void check_programs() {
    for (std::size_t i = 0; i < graph_.works.size(); ++i) {
      const Work& work = graph_.works[i];
      if (work.program < 0) continue;
      if (!in_range(work.program, graph_.programs)) {
        report("work {}: program {} is out of range ({} programs)", i, work.program,
               graph_.programs.size());
        continue;
      }
      const WorkProgram& program = graph_.programs[static_cast<std::size_t>(work.program)];
      if (!runs_parts(work, program.steps))
        report("work {}: its program does not run the steps of its parts", i);
      check_events(i, program);
    }
  }

  /// Parts whose layers have no steps in the program (vocabulary shards) may be missing.
  bool runs_parts(const Work& work, const std::vector<ProgramStep>& steps) const {
    std::size_t next = 0;
    for (const WorkPartUse& use : work.parts)
      for (std::int32_t repeat = 0; repeat < use.count; ++repeat) {
        if (std::ranges::find(steps, use.part, &ProgramStep::part) == steps.end()) continue;
        const std::size_t count = graph_.parts[static_cast<std::size_t>(use.part)].steps.size();
        for (std::size_t s = 0; s < count; ++s, ++next)
          if (next >= steps.size() || steps[next].part != use.part ||
              steps[next].step != static_cast<std::int32_t>(s))
            return false;
      }
    return next == steps.size();
  }

  void check_events(std::size_t work, const WorkProgram& program) {
    std::int32_t last = 0;
    int temporaries = 0;
    std::set<BufferKey> acquired, freed;
    for (const BufferEvent& event : program.buffers) {
      if (event.step < last || event.step > static_cast<std::int32_t>(program.steps.size()))
        report("work {}: events of buffers are not in the order of its steps", work);
      last = event.step;
      switch (event.action) {
        case BufferAction::kAcquire:
          if (!acquired.insert(event.buffer).second)
            report("work {}: buffer {} is acquired twice", work, event.buffer.id);
          freed.erase(event.buffer);
          break;
        case BufferAction::kConsume:
        case BufferAction::kRelease:
          if (!freed.insert(event.buffer).second)
            report("work {}: buffer {} is freed twice", work, event.buffer.id);
          acquired.erase(event.buffer);
          break;
        case BufferAction::kBeginTemporary:
          ++temporaries;
          break;
        case BufferAction::kEndTemporary:
          if (--temporaries < 0)
            report("work {}: a temporary buffer is freed before it is acquired", work);
          break;
      }
    }
    if (temporaries != 0) report("work {}: a temporary buffer is not freed", work);
  }

  void check_order() {
    for (std::size_t i = 0; i < graph_.tasks.size(); ++i)
      for (const TaskId before : graph_.dependencies_of(TaskId(i)))
        if (before.value < 0 || before.index() >= i)
          report("task {} depends on task {}, which is not an earlier task", i, before.value);
  }

  static bool stream_suits(const Task& task) {
    switch (task.kind) {
      case TaskKind::kSend:
        return task.stream == Stream::kSendNext || task.stream == Stream::kSendPrevious;
      case TaskKind::kReceive:
        return task.stream == Stream::kReceiveNext || task.stream == Stream::kReceivePrevious;
      case TaskKind::kCollective:
        return axis_of(task.stream) || task.stream == Stream::kToHost ||
               task.stream == Stream::kFromHost;
      case TaskKind::kOptimizer:
        return task.stream == Stream::kCompute || task.stream == Stream::kHost;
      case TaskKind::kForward:
      case TaskKind::kBackward:
      case TaskKind::kBackwardInput:
      case TaskKind::kBackwardWeight:
        break;
    }
    return task.stream == Stream::kCompute;
  }

  void check_kinds_and_streams() {
    for (std::size_t i = 0; i < graph_.tasks.size(); ++i) {
      const Task& task = graph_.tasks[i];
      if (task.kind != work_of(task).kind)
        report("task {} has kind {}, but its work has kind {}", i, name_of(task.kind),
               name_of(work_of(task).kind));
      if (!stream_suits(task))
        report("task {} has kind {}, which cannot run on stream {}", i, name_of(task.kind),
               name_of(task.stream));
    }
  }

  // ---- messages ----

  void check_messages() {
    std::vector<std::uint8_t> received(graph_.tasks.size(), 0);
    for (std::size_t i = 0; i < graph_.tasks.size(); ++i)
      if (graph_.tasks[i].kind == TaskKind::kReceive) check_receive(i, received);
    for (std::size_t i = 0; i < graph_.tasks.size(); ++i)
      if (graph_.tasks[i].kind == TaskKind::kSend && received[i] == 0)
        report("send {} is never received", i);
  }

  void check_receive(std::size_t i, std::vector<std::uint8_t>& received) {
    const Task& receive = graph_.tasks[i];
    if (receive.partner < 0 || static_cast<std::size_t>(receive.partner) >= i) {
      report("receive {} refers to task {}, which is not an earlier task", i, receive.partner);
      return;
    }
    const auto partner = static_cast<std::size_t>(receive.partner);
    const Task& send = graph_.tasks[partner];
    if (send.kind != TaskKind::kSend) {
      report("receive {} refers to task {}, which has kind {}", i, partner, name_of(send.kind));
      return;
    }
    if (received[partner] != 0)
      report("send {} is received twice, the second time by {}", partner, i);
    received[partner] = 1;
    if (send.microbatch != receive.microbatch)
      report("receive {} has micro-batch {}, but its send {} has {}", i, receive.microbatch,
             partner, send.microbatch);
    if (send.rank == receive.rank)
      report("rank {} sends to itself ({} to {})", send.rank, partner, i);
    if (work_of(send).transfer != work_of(receive).transfer)
      report("receive {} and send {} have different transfers", i, partner);
  }

  // ---- collectives ----

  void check_collectives() {
    std::size_t members = 0, collective_tasks = 0;
    for (std::size_t c = 0; c < graph_.collectives.size(); ++c) {
      members += static_cast<std::size_t>(std::max(0, graph_.collectives[c].count));
      check_members(c);
    }
    for (const Task& task : graph_.tasks)
      if (task.kind == TaskKind::kCollective) ++collective_tasks;
    if (members != collective_tasks)
      report("{} collective tasks, but {} members of collectives", collective_tasks, members);
  }

  void check_members(std::size_t c) {
    const CollectiveMembers& group = graph_.collectives[c];
    const std::int64_t end = std::int64_t{group.first} + group.count;
    if (group.first < 0 || group.count < 1 ||
        end > static_cast<std::int64_t>(graph_.tasks.size())) {
      report("collective {}: tasks {} to {} are out of range ({} tasks)", c, group.first, end,
             graph_.tasks.size());
      return;
    }
    std::vector<std::int32_t> ranks;
    const Task& first = graph_.tasks[static_cast<std::size_t>(group.first)];
    for (std::int64_t i = group.first; i < end; ++i) {
      const Task& member = graph_.tasks[static_cast<std::size_t>(i)];
      ranks.push_back(member.rank);
      if (member.kind != TaskKind::kCollective || member.partner != static_cast<std::int32_t>(c))
        report("task {} is not a member of collective {}", i, c);
      if (work_of(member).collective != work_of(first).collective)
        report("members of collective {} have different works: task {}", c, i);
      for (const TaskId before : graph_.dependencies_of(TaskId(static_cast<std::int32_t>(i))))
        if (before.value >= group.first)
          report("task {} depends on task {} of its own collective {}", i, before.value, c);
    }
    std::sort(ranks.begin(), ranks.end());
    if (std::adjacent_find(ranks.begin(), ranks.end()) != ranks.end())
      report("collective {} has two members on one rank", c);
  }

  // ---- memory ----

  /// On every rank and in every class, all acquired memory is released, and never more than is
  /// held.
  void check_memory() {
    std::vector<MemoryAmounts> held(graph_.ranks.size());
    std::vector<bool> reported(graph_.ranks.size(), false);
    for (std::size_t i = 0; i < graph_.tasks.size(); ++i) {
      const Task& task = graph_.tasks[i];
      const auto rank = static_cast<std::size_t>(task.rank);
      held[rank] += work_of(task).acquired;
      held[rank] -= work_of(task).released;
      for (std::size_t c = 0; c < held[rank].by_class.size() && !reported[rank]; ++c)
        if (held[rank].by_class[c].value < 0) {
          reported[rank] = true;
          report("task {} releases {} bytes of {} that rank {} does not hold", i,
                 -held[rank].by_class[c].value, name_of(static_cast<MemoryClass>(c)), rank);
        }
    }
    for (std::size_t rank = 0; rank < held.size(); ++rank)
      for (std::size_t c = 0; c < held[rank].by_class.size(); ++c)
        if (held[rank].by_class[c].value > 0)
          report("rank {} still holds {} bytes of {} at the end", rank,
                 held[rank].by_class[c].value, name_of(static_cast<MemoryClass>(c)));
  }

  const TaskGraph& graph_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> check_task_graph(const TaskGraph& graph) {
  return TaskGraphChecks(graph).run();
}

}  // namespace meshwright
