#include "simulator/engine/simulate.hpp"
#include "simulator/evaluate/evaluate.hpp"

namespace meshwright {
namespace {

/// The peak is found by the totals; the classes are tracked along the way to break it down.
struct HeldMemory {
  MemoryAmounts held;
  Bytes held_total, peak_total;
  MemoryAmounts peak;
};

struct WorkTotals {
  Bytes acquired, released, transient;
};

std::vector<WorkTotals> totals_of(const std::vector<Work>& works) {
  std::vector<WorkTotals> totals;
  totals.reserve(works.size());
  for (const Work& work : works)
    totals.push_back({total(work.acquired), total(work.released), total(work.transient)});
  return totals;
}

}  // namespace

std::vector<MemoryAmounts> peak_memory_by_rank(const TaskGraph& graph) {
  std::vector<HeldMemory> ranks;
  ranks.reserve(graph.ranks.size());
  for (const RankInfo& info : graph.ranks)
    ranks.push_back({info.resident, total(info.resident), total(info.resident), info.resident});

  const std::vector<WorkTotals> totals = totals_of(graph.works);
  for (const Task& task : graph.tasks) {
    if (task.stream != Stream::kCompute) continue;
    const Work& work = graph.works[task.work.index()];
    const WorkTotals& sums = totals[task.work.index()];
    HeldMemory& rank = ranks[static_cast<std::size_t>(task.rank)];
    rank.held += work.acquired;
    rank.held_total += sums.acquired;
    if (rank.held_total + sums.transient > rank.peak_total) {
      rank.peak_total = rank.held_total + sums.transient;
      rank.peak = rank.held;
      rank.peak += work.transient;
    }
    rank.held -= work.released;
    rank.held_total -= sums.released;
  }

  std::vector<MemoryAmounts> peaks;
  peaks.reserve(ranks.size());
  for (const HeldMemory& rank : ranks) peaks.push_back(rank.peak);
  return peaks;
}

}  // namespace meshwright
