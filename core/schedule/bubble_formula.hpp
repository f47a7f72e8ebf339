/// The closed-form bubble fraction of a schedule, and the assumptions of the formula that a job
/// violates.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/schedule/schedule.hpp"

namespace meshwright {

/// An assumption of a closed-form bubble formula.
enum class FormulaAssumption : std::uint8_t {
  kEqualStages,    ///< all stages take the same time
  kFreeMessages,   ///< messages between stages take no time
  kEnoughBatches,  ///< at least as many micro-batches as devices
  kWholeGroups,    ///< interleaving: the micro-batch count is a multiple of the device count
  kEqualPasses,    ///< zero bubble: F, B and W take the same time
  kLongWarmUp      ///< zb-h2: micro-batches for a warm-up of 2 p − 2 forward passes
};

struct BubbleFormula {
  std::string formula;  ///< "(p − 1) / (m + p − 1)"
  std::string numbers;  ///< "(8 − 1) / (32 + 8 − 1)"
  double bubble = 0;    ///< share of the pipeline's makespan
  std::string source;   ///< paper and arXiv number
  std::vector<FormulaAssumption> broken;
  friend bool operator==(const BubbleFormula&, const BubbleFormula&) = default;
};

/// The formula in the row of the schedule; nullopt if it has none. Without times in the request the
/// stages are assumed to differ.
std::optional<BubbleFormula> bubble_formula(const ScheduleRule& rule,
                                            const ScheduleRequest& request);

// ---- the formulas: a column of rules.cpp ----
BubbleFormula one_at_a_time_bubble(const ScheduleRequest& request);
BubbleFormula flushed_bubble(const ScheduleRequest& request);
/// flushed_bubble() for chunks that run in groups of p micro-batches.
BubbleFormula looped_bubble(const ScheduleRequest& request);
BubbleFormula zb_h1_bubble(const ScheduleRequest& request);
BubbleFormula zb_h2_bubble(const ScheduleRequest& request);

}  // namespace meshwright
