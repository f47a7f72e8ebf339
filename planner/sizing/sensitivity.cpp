#include "planner/sizing/sensitivity.hpp"

#include <algorithm>

#include "planner/search/node_selection.hpp"
#include "simulator/predict/predict.hpp"

namespace meshwright {
namespace {

PlanOutcome outcome_of(const RankedPlan& row, const SizingJob& job) {
  const Cluster on = nodes_of_row(job.cluster, row);
  const SelectedCosts costs(job.cluster, job.cost_model, on);
  const Evaluation evaluation = predict({row.plan, job.model, on, costs.model()}).evaluation;
  return {
      .step_time = evaluation.step_time,
      .missing_memory = std::max(Bytes(0), peak_memory(evaluation) - evaluation.memory_capacity)};
}

/// The first of the fastest plans that fit. A plan with strategy and nodes of a listed one counts
/// as that.
std::optional<Winner> winner_of(std::span<const RankedPlan* const> plans, std::size_t listed,
                                const std::vector<PlanOutcome>& outcomes) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < plans.size(); ++i)
    if (outcomes[i].missing_memory == Bytes(0) &&
        (!best || outcomes[i].step_time < outcomes[*best].step_time))
      best = i;
  if (!best) return std::nullopt;
  const RankedPlan& first = *plans[*best];
  Winner winner{std::nullopt, first.plan.strategy, outcomes[*best].step_time, first.nodes};
  for (std::size_t i = listed; i-- > 0;)
    if (plans[i]->plan.strategy == winner.strategy && plans[i]->nodes == winner.nodes)
      winner.listed = i;
  return winner;
}

/// How much faster than the winner a plan can be at most, as a share of the winner's step time: the
/// search proves that none is faster than (1 - gap) times the best plan that it found.
double gap_of(const std::optional<Winner>& winner, const std::optional<SearchResult>& search) {
  if (!search) return 1;
  if (search->certificate.proved_optimal) return 0;
  if (!winner || search->plans.empty()) return 1;
  const double bound = (1 - search->certificate.gap) *
                       ratio(search->plans.front().evaluation.step_time, winner->step_time);
  return std::max(0.0, 1 - bound);
}

}  // namespace

std::vector<SensitivityCase> find_sensitivity(std::span<const RankedPlan> listed,
                                              std::span<const RankedPlan> further,
                                              std::span<const SizingJob> perturbed,
                                              const SizingOptions& options) {
  const std::vector<SizingResult> searches = search_all(perturbed, options);
  std::vector<const RankedPlan*> plans;
  for (const RankedPlan& row : listed) plans.push_back(&row);
  for (const RankedPlan& row : further) plans.push_back(&row);
  for (const SizingResult& result : searches)
    if (result.search && !result.search->plans.empty())
      plans.push_back(&result.search->plans.front());
  std::vector<SensitivityCase> cases(perturbed.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    std::vector<PlanOutcome>& outcomes = cases[i].listed;
    for (const RankedPlan* row : plans) outcomes.push_back(outcome_of(*row, perturbed[i]));
    cases[i].winner = winner_of(plans, listed.size(), outcomes);
    cases[i].gap = gap_of(cases[i].winner, searches[i].search);
    outcomes.resize(listed.size());
  }
  return cases;
}

std::vector<RangeCase> range_cases(std::span<const PlanFigures> plans) {
  std::vector<RangeCase> cases;
  if (plans.empty() || !plans.front().range) return cases;
  const auto add = [&](const char* name, Ticks StepTimeRange::*first, Ticks StepTimeRange::*rest) {
    const Ticks of_first = *plans.front().range.*first;
    RangeCase result{.name = name, .first = of_first, .winner = 0, .step_time = of_first};
    for (std::size_t i = 1; i < plans.size(); ++i)
      if (plans[i].range && *plans[i].range.*rest < result.step_time) {
        result.winner = i;
        result.step_time = *plans[i].range.*rest;
      }
    cases.push_back(std::move(result));
  };
  add("all plans at p10", &StepTimeRange::p10, &StepTimeRange::p10);
  add("all plans at p90", &StepTimeRange::p90, &StepTimeRange::p90);
  if (plans.size() > 1)
    add("plan 1 at p90, others at p10", &StepTimeRange::p90, &StepTimeRange::p10);
  return cases;
}

}  // namespace meshwright
