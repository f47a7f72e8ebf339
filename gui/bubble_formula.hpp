/// The bubble that papers give for a schedule, to stand beside the simulated one, and what the
/// formula takes for granted that this job does not keep.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/plan.hpp"
#include "core/schedule.hpp"
#include "core/stage_times.hpp"

namespace meshwright::gui {

/// What a formula takes for granted.
enum class FormulaAssumption : std::uint8_t {
  kEqualStages,    ///< every stage takes as long as every other
  kFreeMessages,   ///< messages between stages take no time
  kEnoughBatches,  ///< at least as many micro-batches as devices
  kWholeGroups,    ///< interleaving: micro-batches are a multiple of the devices
  kEqualPasses,    ///< zero bubble: F, B and W take the same
};

struct BubbleFormula {
  std::string formula;  ///< "(p − 1) / (m + p − 1)"
  std::string numbers;  ///< "(8 − 1) / (32 + 8 − 1)"
  double bubble = 0;    ///< share of the pipeline's makespan
  std::string source;   ///< paper and arXiv number
  std::vector<FormulaAssumption> broken;
  friend bool operator==(const BubbleFormula&, const BubbleFormula&) = default;
};

/// Of makespan, for naive, gpipe, 1f1b, interleaved-1f1b, breadth-first, zb-h1; nothing for others.
/// `times` absent: how long stages take is not known, so equal stages are not granted.
std::optional<BubbleFormula> bubble_formula(const Plan& plan, const Schedule& schedule,
                                            const std::optional<StageTimes>& times);

}  // namespace meshwright::gui
