#include "core/schedule/bubble_formula.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright {
namespace {

bool all_equal(const std::vector<Ticks>& times) {
  return std::adjacent_find(times.begin(), times.end(), std::not_equal_to<>()) == times.end();
}

/// Idle (p − 1) tF against 3 m tF of work per device.
/// Worked number: p = 4, m = 8: 3 / (24 + 3).
BubbleFormula zero_bubble_makespan(const ScheduleRequest& r) {
  const double idle = r.devices - 1, work = 3.0 * r.microbatches;
  BubbleFormula made{"(p − 1) / (3 m + p − 1)",
                     fmt::format("({0} − 1) / (3 · {1} + {0} − 1)", r.devices, r.microbatches),
                     idle / (work + idle),
                     "Qi et al., arXiv:2401.10241, table 1",
                     {}};
  if (r.times &&
      (r.times->forward != r.times->backward_input || r.times->forward != r.times->backward_weight))
    made.broken.push_back(FormulaAssumption::kEqualPasses);
  return made;
}

}  // namespace

/// Idle time of (p − 1) micro-batches against m micro-batches of work, in chunks of 1/v: Narayanan
/// et al., arXiv:2104.04473, 2.2: (p - 1) / (v m) of the ideal time. As a fraction of the makespan:
///   ideal = v m, idle = p - 1   →   (p - 1) / (v m + p - 1)
/// Worked number: p = 4, m = 8, v = 1: 3 / 11; v = 2: 3 / 19.
BubbleFormula flushed_bubble(const ScheduleRequest& r) {
  const double idle = r.devices - 1, work = static_cast<double>(r.chunks) * r.microbatches;
  if (r.chunks == 1)
    return {"(p − 1) / (m + p − 1)",
            fmt::format("({0} − 1) / ({1} + {0} − 1)", r.devices, r.microbatches),
            idle / (work + idle),
            "Narayanan et al., arXiv:2104.04473, 2.2.1",
            {}};
  return {"(p − 1) / (v m + p − 1)",
          fmt::format("({0} − 1) / ({2} · {1} + {0} − 1)", r.devices, r.microbatches, r.chunks),
          idle / (work + idle),
          "Narayanan et al., arXiv:2104.04473, 2.2.2",
          {}};
}

BubbleFormula looped_bubble(const ScheduleRequest& r) {
  BubbleFormula made = flushed_bubble(r);
  if (r.microbatches % r.devices != 0) made.broken.push_back(FormulaAssumption::kWholeGroups);
  return made;
}

/// One micro-batch at a time: every device works 1/p of the time.
BubbleFormula one_at_a_time_bubble(const ScheduleRequest& r) {
  return {"(p − 1) / p",
          fmt::format("({0} − 1) / {0}", r.devices),
          static_cast<double>(r.devices - 1) / r.devices,
          "Huang et al., arXiv:1811.06965, 2.3",
          {}};
}

/// Idle (p − 1)(tF + tB − tW), with tF = tB = tW a third of 1f1b's (p − 1) 3 tF, against 3 m tF of
/// work: Qi et al., arXiv:2401.10241, table 1 (ZB-H1).
BubbleFormula zb_h1_bubble(const ScheduleRequest& r) {
  BubbleFormula made = zero_bubble_makespan(r);
  if (r.microbatches < r.devices)
    made.broken.insert(made.broken.begin(), FormulaAssumption::kEnoughBatches);
  return made;
}

/// No idle time between passes: every device works 3 m tF, and the last one starts (p − 1) tF after
/// the first (section 2.3 there). The bubble of the period is zero.
BubbleFormula zb_h2_bubble(const ScheduleRequest& r) {
  BubbleFormula made = zero_bubble_makespan(r);
  if (r.microbatches < 2 * r.devices - 2)
    made.broken.insert(made.broken.begin(), FormulaAssumption::kLongWarmUp);
  return made;
}

std::optional<BubbleFormula> bubble_formula(const ScheduleRule& rule,
                                            const ScheduleRequest& request) {
  if (rule.bubble == nullptr) return std::nullopt;
  BubbleFormula made = rule.bubble(request);
  const std::optional<StageTimes>& times = request.times;
  if (!times || !all_equal(times->forward) || !all_equal(times->backward_input) ||
      !all_equal(times->backward_weight))
    made.broken.push_back(FormulaAssumption::kEqualStages);
  if (!times || (request.devices > 1 && times->latency > Ticks()))
    made.broken.push_back(FormulaAssumption::kFreeMessages);
  return made;
}

}  // namespace meshwright
