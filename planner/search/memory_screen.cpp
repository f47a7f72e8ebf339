#include "planner/search/memory_screen.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/lowering/lower.hpp"
#include "planner/search/bounds.hpp"
#include "simulator/predict/predict.hpp"

namespace meshwright {
namespace {

std::optional<MemoryShortfall> shortfall_of(std::span<const Bytes> peaks, Bytes capacity) {
  const auto largest = std::max_element(peaks.begin(), peaks.end());
  if (*largest <= capacity) return std::nullopt;
  return MemoryShortfall{.needed = *largest,
                         .capacity = capacity,
                         .position = static_cast<int>(largest - peaks.begin())};
}

/// Checks the memory of one prospect under different recomputation.
class Screen {
 public:
  Screen(const Prospect& prospect, const SearchJob& job)
      : job_(job),
        plan_(plan_of(prospect, job)),
        schedule_(schedule_of(plan_)),
        capacity_(job_facts(plan_.strategy, job.model, job.cluster).memory_capacity) {}

  std::optional<MemoryShortfall> under(const Recompute& recompute) {
    plan_.strategy.recompute = recompute;
    if (cuts_passes(plan_.strategy)) return shortfall_of(plan_, job_);
    const LoweredStages lowered =
        lower_stages(plan_, job_.model, job_.cluster, job_.cost_model.memory());
    return shortfall_of(peak_of_passes(lowered, schedule_), capacity_);
  }

 private:
  const SearchJob& job_;
  Plan plan_;
  Schedule schedule_;
  Bytes capacity_;
};

Recompute some_blocks(int blocks) { return {.kind = RecomputeKind::kBlocks, .blocks = blocks}; }

std::optional<PruneReason> choose_blocks(Prospect& prospect, Screen& screen,
                                         MemoryShortfall& shortfall) {
  const std::vector<int>& cut = *prospect.blocks_per_stage;
  const int all = *std::max_element(cut.begin(), cut.end());
  if (all <= 1 || !screen.under({})) return PruneReason::kDominated;
  int too_few = 0, enough = all - 1;
  if (const auto found = screen.under(some_blocks(enough))) {
    shortfall = *found;
    return PruneReason::kMemory;
  }
  while (enough - too_few > 1) {
    const int middle = (too_few + enough) / 2;
    (screen.under(some_blocks(middle)) ? too_few : enough) = middle;
  }
  prospect.candidate.recompute.blocks = enough;
  return std::nullopt;
}

}  // namespace

Plan plan_of(const Prospect& prospect, const SearchJob& job) {
  return {strategy_of(prospect.candidate, job.goal, job.fixed), *prospect.blocks_per_stage};
}

std::optional<MemoryShortfall> shortfall_of(const Plan& plan, const SearchJob& job) {
  if (cuts_passes(plan.strategy))
    return shortfall_of(lower(plan, job.model, job.cluster, {.memory = job.cost_model.memory()}),
                        job_facts(plan.strategy, job.model, job.cluster));
  const LoweredStages lowered = lower_stages(plan, job.model, job.cluster, job.cost_model.memory());
  return shortfall_of(peak_of_passes(lowered, schedule_of(plan)),
                      job_facts(plan.strategy, job.model, job.cluster).memory_capacity);
}

std::optional<MemoryShortfall> shortfall_of(const TaskGraph& graph, const JobFacts& facts) {
  std::vector<Bytes> peaks;
  for (const MemoryAmounts& peak : peak_memory_by_rank(graph)) peaks.push_back(total(peak));
  return shortfall_of(peaks, facts.memory_capacity);
}

std::optional<PruneReason> screen_memory(Prospect& prospect, const SearchJob& job,
                                         MemoryShortfall& shortfall) {
  Screen screen(prospect, job);
  const Recompute recompute = prospect.candidate.recompute;
  if (recompute.kind == RecomputeKind::kBlocks && recompute.blocks == 0 &&
      recompute.blocks_per_stage.empty())
    return choose_blocks(prospect, screen, shortfall);
  const auto found = screen.under(recompute);
  if (!found) return std::nullopt;
  shortfall = *found;
  return PruneReason::kMemory;
}

}  // namespace meshwright
