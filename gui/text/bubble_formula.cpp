#include "gui/text/bubble_formula.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright::gui {
namespace {

struct Numbers {
  int p = 1, v = 1, m = 1;
};

/// Idle time of (p − 1) micro-batches against m micro-batches of work, in chunks of 1/v: Narayanan
/// et al., arXiv:2104.04473, 2.2: (p - 1) / (v m) of the ideal time. As a fraction of the makespan:
///   ideal = v m, idle = p - 1   →   (p - 1) / (v m + p - 1)
/// Worked number: p = 4, m = 8, v = 1: 3 / 11; v = 2: 3 / 19.
BubbleFormula flushed(const Numbers& n) {
  const double idle = n.p - 1, work = static_cast<double>(n.v) * n.m;
  if (n.v == 1)
    return {"(p − 1) / (m + p − 1)",
            fmt::format("({0} − 1) / ({1} + {0} − 1)", n.p, n.m),
            idle / (work + idle),
            "Narayanan et al., arXiv:2104.04473, 2.2.1",
            {}};
  return {"(p − 1) / (v m + p − 1)",
          fmt::format("({0} − 1) / ({2} · {1} + {0} − 1)", n.p, n.m, n.v),
          idle / (work + idle),
          "Narayanan et al., arXiv:2104.04473, 2.2.2",
          {}};
}

/// One micro-batch at a time: every device works 1/p of the time.
BubbleFormula one_at_a_time(const Numbers& n) {
  return {"(p − 1) / p",
          fmt::format("({0} − 1) / {0}", n.p),
          static_cast<double>(n.p - 1) / n.p,
          "Huang et al., arXiv:1811.06965, 2.3",
          {}};
}

/// Idle (p − 1)(tF + tB − tW), with tF = tB = tW a third of 1f1b's (p − 1) 3 tF, against 3 m tF of
/// work: Qi et al., arXiv:2401.10241, table 1 (ZB-H1).
/// Worked number: p = 4, m = 8: 3 / (24 + 3).
BubbleFormula zero_bubble_h1(const Numbers& n) {
  const double idle = n.p - 1, work = 3.0 * n.m;
  return {"(p − 1) / (3 m + p − 1)",
          fmt::format("({0} − 1) / (3 · {1} + {0} − 1)", n.p, n.m),
          idle / (work + idle),
          "Qi et al., arXiv:2401.10241, table 1",
          {}};
}

bool all_equal(const std::vector<Ticks>& times) {
  return std::adjacent_find(times.begin(), times.end(), std::not_equal_to<>()) == times.end();
}

}  // namespace

std::optional<BubbleFormula> bubble_formula(const Plan& plan, const Schedule& schedule,
                                            const std::optional<StageTimes>& times) {
  const Numbers n{plan.strategy.degrees.pipeline, plan.strategy.degrees.chunks,
                  schedule.microbatch_count};
  const std::string& name = plan.strategy.schedule;
  using Assumption = FormulaAssumption;
  BubbleFormula result;
  std::vector<Assumption> broken;
  if (name == "naive") {
    result = one_at_a_time(n);
  } else if (name == "gpipe" || name == "1f1b") {
    result = flushed(n);
  } else if (name == "interleaved-1f1b" || name == "breadth-first") {
    result = flushed(n);
    if (n.m % n.p != 0) broken.push_back(Assumption::kWholeGroups);
  } else if (name == "zb-h1") {
    result = zero_bubble_h1(n);
    if (n.m < n.p) broken.push_back(Assumption::kEnoughBatches);
    if (times &&
        (times->forward != times->backward_input || times->forward != times->backward_weight))
      broken.push_back(Assumption::kEqualPasses);
  } else {
    return std::nullopt;
  }
  if (!times || !all_equal(times->forward) || !all_equal(times->backward_input) ||
      !all_equal(times->backward_weight))
    broken.push_back(Assumption::kEqualStages);
  if (!times || (n.p > 1 && times->latency > Ticks())) broken.push_back(Assumption::kFreeMessages);
  result.broken = std::move(broken);
  return result;
}

}  // namespace meshwright::gui
