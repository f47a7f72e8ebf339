/// Graphs of data-parallel plans, and what they communicate and hold.
///
/// The tiny GPT has blocks of 49,984 parameters, tables of 640 * 64 = 40,960 and a head of
/// 128 + 512 * 64 = 32,896: P = 223,808 with three blocks, a multiple of 8.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/lowering/lower.hpp"
#include "tests/core/tiny_models.hpp"

namespace meshwright::testing_models {

inline constexpr std::int64_t kBlock = 49'984, kTables = 40'960, kHead = 32'896;
inline constexpr std::int64_t kAll = 3 * kBlock + kTables + kHead;

/// Three blocks over four nodes of two devices.
inline TaskGraph lowered(const Strategy& s, RankSet ranks = RankSet::kRepresentatives,
                         const Cluster& cluster = cluster_of(4, 2)) {
  const TaskGraph graph = lower(plan_of(s, 3), gpt({.blocks = 3}), cluster, {.ranks = ranks});
  EXPECT_THAT(check_task_graph(graph), testing::IsEmpty());
  return graph;
}

inline Strategy data_strategy(int data, int zero, std::int64_t microbatches = 1) {
  Strategy s = strategy_of({.data = data}, microbatches);
  s.zero = zero;
  return s;
}

inline Strategy strategy_with(DataParallelKind kind, int data) {
  Strategy s = strategy_of({.data = data}, 1);
  s.data_parallelism.kind = kind;
  return s;
}

inline std::vector<Collective> collectives_of(const TaskGraph& graph, CollectiveKind kind,
                                              int rank = 0) {
  std::vector<Collective> found;
  for (const Task& task : graph.tasks) {
    const Work& work = graph.works[task.work.index()];
    if (task.kind == TaskKind::kCollective && task.rank == rank && work.collective.kind == kind)
      found.push_back(work.collective);
  }
  return found;
}

inline std::int64_t bytes_of(const std::vector<Collective>& collectives) {
  std::int64_t sum = 0;
  for (const Collective& c : collectives) sum += c.bytes.value;
  return sum;
}

/// Peak of one memory class on the first rank, in addition to resident memory.
inline std::int64_t peak_held(const TaskGraph& graph, MemoryClass memory_class) {
  std::int64_t held = 0, peak = 0;
  for (const Task& task : graph.tasks) {
    if (task.rank != 0 || task.stream != Stream::kCompute) continue;
    const Work& work = graph.works[task.work.index()];
    held += work.acquired[memory_class].value;
    peak = std::max(peak, held + work.transient[memory_class].value);
    held -= work.released[memory_class].value;
  }
  return peak;
}

}  // namespace meshwright::testing_models
