/// The closed-form bubble fraction of a schedule, shown next to the simulated one, and the
/// assumptions of the formula that this job violates.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/plan/plan.hpp"
#include "core/schedule/schedule.hpp"
#include "core/schedule/stage_times.hpp"

namespace meshwright::gui {

/// An assumption of a closed-form bubble formula.
enum class FormulaAssumption : std::uint8_t {
  kEqualStages,    ///< all stages take the same time
  kFreeMessages,   ///< messages between stages take no time
  kEnoughBatches,  ///< at least as many micro-batches as devices
  kWholeGroups,    ///< interleaving: the micro-batch count is a multiple of the device count
  kEqualPasses,    ///< zero bubble: F, B and W take the same time
};

struct BubbleFormula {
  std::string formula;  ///< "(p − 1) / (m + p − 1)"
  std::string numbers;  ///< "(8 − 1) / (32 + 8 − 1)"
  double bubble = 0;    ///< share of the pipeline's makespan
  std::string source;   ///< paper and arXiv number
  std::vector<FormulaAssumption> broken;
  friend bool operator==(const BubbleFormula&, const BubbleFormula&) = default;
};

/// Bubble fraction of the makespan for naive, gpipe, 1f1b, interleaved-1f1b, breadth-first and
/// zb-h1; nullopt for other schedules. Without `times` the stages are assumed to differ.
std::optional<BubbleFormula> bubble_formula(const Plan& plan, const Schedule& schedule,
                                            const std::optional<StageTimes>& times);

}  // namespace meshwright::gui
