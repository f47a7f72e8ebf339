/// Does the best plan stay the best if the hardware is somewhat better or worse, or if predictions
/// are off as much as those of published runs?
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/formats/plan.hpp"
#include "planner/search/search.hpp"
#include "planner/sizing/sizing.hpp"

namespace meshwright {

struct PlanOutcome {
  Ticks step_time;
  Bytes missing_memory;  ///< beyond the capacity; 0: fits
  friend bool operator==(const PlanOutcome&, const PlanOutcome&) = default;
};

/// The fastest plan that fits.
struct Winner {
  std::optional<std::size_t> listed;  ///< index among the listed plans; absent: another plan
  Strategy strategy;
  Ticks step_time;
  std::vector<NodeGroup> nodes = {};  ///< RankedPlan::nodes
};

struct SensitivityCase {
  std::vector<PlanOutcome> listed;  ///< every listed plan, predicted anew
  std::optional<Winner> winner;     ///< absent: no plan fits
  /// Optimality gap: how much faster than the winner a plan can be at most, as a share of its step
  /// time. 0: the new search was completed, 1: no bound is known.
  double gap = 1;
};
/// One case per job of `perturbed`, each the job of the listed plans on other hardware. Each is
/// searched again, as in search_all(); the winner is the fastest of the listed plans, the `further`
/// ones, and the best plans of all these searches, each on its nodes; of equally fast plans the
/// first. InputError of a search means that it finds nothing.
std::vector<SensitivityCase> find_sensitivity(std::span<const RankedPlan> listed,
                                              std::span<const RankedPlan> further,
                                              std::span<const SizingJob> perturbed,
                                              const SizingOptions& options);

/// Among the listed plans, if predictions are off by p10 to p90 (PlanFigures::range).
struct RangeCase {
  std::string name;        ///< "all plans at p10"
  Ticks first;             ///< step time of the first plan
  std::size_t winner = 0;  ///< the first of equally fast plans
  Ticks step_time;         ///< of the winner
  friend bool operator==(const RangeCase&, const RangeCase&) = default;
};
/// All plans at p10; all at p90; the first at p90 and the others at p10. Plans without a range are
/// left out; without one for the first plan there are no cases.
std::vector<RangeCase> range_cases(std::span<const PlanFigures> plans);

}  // namespace meshwright
