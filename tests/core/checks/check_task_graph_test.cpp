// Injects every kind of defect into a valid graph; each must be found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/graph/task_graph.hpp"
#include "core/lowering/lower.hpp"
#include "tests/core/tiny_models.hpp"

namespace meshwright {
namespace {

using namespace testing_models;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

/// Two stages of two data replicas, all four ranks: messages, collectives, optimizer.
TaskGraph sound_graph() {
  Strategy s;
  s.degrees = {.data = 2, .pipeline = 2};
  s.global_batch = 4;
  s.sequence_length = 64;
  const Plan plan = even_plan(s, 2, 2);
  return lower(plan, gpt({.blocks = 2}), cluster_of(1, 4),
               {.ranks = RankSet::kAll, .programs = true});
}

std::size_t first_of(const TaskGraph& graph, TaskKind kind) {
  const auto found = std::find_if(graph.tasks.begin(), graph.tasks.end(),
                                  [kind](const Task& task) { return task.kind == kind; });
  return static_cast<std::size_t>(found - graph.tasks.begin());
}

template <class Damage>
std::vector<std::string> findings_after(Damage damage) {
  TaskGraph graph = sound_graph();
  damage(graph);
  return check_task_graph(graph);
}

TEST(CheckTaskGraph, AcceptsAValidGraph) {
  EXPECT_THAT(check_task_graph(sound_graph()), IsEmpty());
}

TEST(CheckTaskGraph, FindsBrokenOffsets) {
  EXPECT_THAT(findings_after([](TaskGraph& g) { g.dependency_begin.pop_back(); }),
              Contains(HasSubstr("dependency offsets, got")));
  EXPECT_THAT(findings_after([](TaskGraph& g) { g.dependencies.pop_back(); }),
              Contains(HasSubstr("dependency offsets range from")));
  EXPECT_THAT(findings_after([](TaskGraph& g) { g.dependency_begin[3] = 1000; }),
              Contains(HasSubstr("dependency offsets of task 3 decrease")));
}

TEST(CheckTaskGraph, FindsIndicesOutOfRange) {
  EXPECT_THAT(findings_after([](TaskGraph& g) { g.tasks[2].work = WorkId(9999); }),
              Contains(HasSubstr("work 9999 is out of range")));
  EXPECT_THAT(findings_after([](TaskGraph& g) { g.tasks[2].rank = -1; }),
              Contains(HasSubstr("rank -1 is out of range")));
  EXPECT_THAT(findings_after([](TaskGraph& g) { g.works[0].parts[0].count = 0; }),
              Contains(HasSubstr("0 times")));
}

TEST(CheckTaskGraph, FindsProgramsThatDoNotRunTheirParts) {
  EXPECT_THAT(findings_after([](TaskGraph& g) { g.works[0].program = 9999; }),
              Contains(HasSubstr("work 0: program 9999 is out of range")));
  const std::string missing = "work 0: its program does not run the steps of its parts";
  EXPECT_THAT(findings_after([](TaskGraph& g) { g.programs[0].steps.pop_back(); }),
              Contains(missing));
  EXPECT_THAT(findings_after([](TaskGraph& g) {
                std::swap(g.programs[0].steps[0].step, g.programs[0].steps[1].step);
              }),
              Contains(missing));
}

TEST(CheckTaskGraph, FindsBuffersThatAreFreedTwiceOrNever) {
  const auto damage = [](BufferAction from, BufferAction to) {
    return findings_after([=](TaskGraph& g) {
      std::ranges::find(g.programs[1].buffers, from, &BufferEvent::action)->action = to;
    });
  };
  EXPECT_THAT(damage(BufferAction::kBeginTemporary, BufferAction::kEndTemporary),
              Contains("work 1: a temporary buffer is not freed"));
  const auto repeat = [](BufferAction action) {
    return findings_after([=](TaskGraph& g) {
      auto& events = g.programs[1].buffers;
      const auto event = std::ranges::find(events, action, &BufferEvent::action);
      events.insert(event, BufferEvent(*event));
    });
  };
  EXPECT_THAT(repeat(BufferAction::kRelease), Contains(HasSubstr("is freed twice")));
  EXPECT_THAT(repeat(BufferAction::kAcquire), Contains(HasSubstr("is acquired twice")));
  EXPECT_THAT(findings_after([](TaskGraph& g) { g.programs[1].buffers.front().step = 1000; }),
              Contains("work 1: events of buffers are not in the order of its steps"));
}

TEST(CheckTaskGraph, FindsADependencyOnALaterTask) {
  EXPECT_THAT(
      findings_after([](TaskGraph& g) { g.dependencies.back() = TaskId(g.tasks.size() - 1); }),
      Contains(HasSubstr("which is not an earlier task")));
}

TEST(CheckTaskGraph, FindsWorkOfAnotherKindAndUnsuitableStreams) {
  EXPECT_THAT(findings_after([](TaskGraph& g) {
                g.tasks[first_of(g, TaskKind::kForward)].kind = TaskKind::kBackward;
              }),
              Contains(HasSubstr("its work has kind F")));
  EXPECT_THAT(findings_after([](TaskGraph& g) {
                g.tasks[first_of(g, TaskKind::kSend)].stream = Stream::kCompute;
              }),
              Contains(HasSubstr("has kind send, which cannot run on stream compute")));
}

TEST(CheckTaskGraph, FindsMessagesThatDoNotMatch) {
  const auto receive = [](TaskGraph& g) -> Task& {
    return g.tasks[first_of(g, TaskKind::kReceive)];
  };
  EXPECT_THAT(findings_after([&](TaskGraph& g) { receive(g).partner = -1; }),
              Contains(HasSubstr("is never received")));
  EXPECT_THAT(findings_after([&](TaskGraph& g) { receive(g).partner = 0; }),
              Contains(HasSubstr("which has kind F")));
  EXPECT_THAT(findings_after([&](TaskGraph& g) { ++receive(g).microbatch; }),
              Contains(HasSubstr("has micro-batch 1, but its send")));
  EXPECT_THAT(findings_after([&](TaskGraph& g) {
                receive(g).rank = g.tasks[static_cast<std::size_t>(receive(g).partner)].rank;
              }),
              Contains(HasSubstr("sends to itself")));
  EXPECT_THAT(findings_after([&](TaskGraph& g) {
                g.works[receive(g).work.index()].transfer.bytes += Bytes(1);
              }),
              Contains(HasSubstr("have different transfers")));
}

TEST(CheckTaskGraph, FindsASendThatIsReceivedTwice) {
  EXPECT_THAT(findings_after([](TaskGraph& g) {
                const std::size_t first = first_of(g, TaskKind::kReceive);
                for (std::size_t i = first + 1; i < g.tasks.size(); ++i)
                  if (g.tasks[i].kind == TaskKind::kReceive) {
                    g.tasks[i].partner = g.tasks[first].partner;
                    break;
                  }
              }),
              Contains(HasSubstr("is received twice")));
}

TEST(CheckTaskGraph, FindsBrokenCollectives) {
  EXPECT_THAT(findings_after([](TaskGraph& g) { g.collectives[0].count = 1; }),
              Contains(HasSubstr("members of collectives")));
  EXPECT_THAT(findings_after([](TaskGraph& g) { g.collectives[0].first = 0; }),
              Contains(HasSubstr("is not a member of collective 0")));
  EXPECT_THAT(findings_after([](TaskGraph& g) { g.collectives[0].count = 1 << 20; }),
              Contains(HasSubstr("collective 0: tasks")));
  EXPECT_THAT(findings_after([](TaskGraph& g) {
                const auto first = static_cast<std::size_t>(g.collectives[0].first);
                g.tasks[first + 1].rank = g.tasks[first].rank;
              }),
              Contains(HasSubstr("two members on one rank")));
  EXPECT_THAT(findings_after([](TaskGraph& g) {
                const auto second = static_cast<std::size_t>(g.collectives[0].first) + 1;
                const auto edge = static_cast<std::size_t>(g.dependency_begin[second]);
                g.dependencies[edge] = TaskId(g.collectives[0].first);
              }),
              Contains(HasSubstr("of its own collective")));
}

TEST(CheckTaskGraph, FindsMemoryThatIsNotReleasedOrNeverHeld) {
  EXPECT_THAT(findings_after(
                  [](TaskGraph& g) { g.works[0].acquired[MemoryClass::kActivations] += Bytes(1); }),
              Contains(HasSubstr("still holds 2 bytes of activations")));  // two micro-batches
  EXPECT_THAT(
      findings_after([](TaskGraph& g) { g.works[1].released[MemoryClass::kLogits] += Bytes(5); }),
      Contains(HasSubstr("releases 5 bytes of logits")));
}

TEST(CheckTaskGraph, StopsAt20Findings) {
  EXPECT_EQ(findings_after([](TaskGraph& g) {
              for (Task& task : g.tasks) task.stream = Stream::kTensor;
            }).size(),
            20u);
}

TEST(StableName, AgreesWithTheListOfAllNamesAndCountsRepeats) {
  const TaskGraph graph = sound_graph();
  const TextTable names = stable_names(graph);
  for (std::size_t i = 0; i < graph.tasks.size(); ++i)
    EXPECT_EQ(stable_name(graph, TaskId(i)), names[i]);
  EXPECT_THAT(names, Contains("r0.compute.s0.F0"));
  EXPECT_THAT(names, Contains("r0.send-next.s0.send0"));
  EXPECT_THAT(names, Contains("r2.receive-previous.s1.receive0"));
  EXPECT_THAT(names, Contains("r0.compute.optimizer"));
  EXPECT_THAT(names, Contains("r0.data.s0.collective.all-reduce"));

  TaskGraph twice = graph;
  twice.tasks[2] = twice.tasks[0];
  EXPECT_EQ(stable_name(twice, TaskId(2)), "r0.compute.s0.F0#2");
}

}  // namespace
}  // namespace meshwright
