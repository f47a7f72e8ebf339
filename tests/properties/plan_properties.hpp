/// What must hold for the simulation of every plan, checked apart from the code that computes it.
///
///   graph         check_task_graph() finds nothing, folded and with all ranks
///   times         every task starts as soon as its stream is free and its inputs have arrived
///   sums          on every rank busy and idle time add up to the step, and so do the parts of the
///                 breakdown; shares add up to one
///   memory        the peak is the largest amount that the tasks of a rank hold in their order
///   folding       one rank per pipeline rank and all ranks give the same step and the same
///   figures;
///                 replicas simulated by class give the same times
///   contention    sharing links never makes a step shorter
///   repetition    a second prediction is equal
///   monotonicity  with the same plan, faster or larger hardware never makes a step longer
///   files         a plan file read back is the same plan with the same step
///
/// Why monotonicity holds for every plan: the order of the tasks of every stream is part of the
/// graph, and no task chooses by the clock what runs next. A start is the maximum of earlier ends,
/// and an end is a start plus a duration, so the end of the last task is a composition of sums and
/// maxima that does not decrease in any duration. It would not hold for list scheduling, where a
/// free device takes the next ready task, nor for lower(), which orders the tasks of a sharded
/// output layer by estimated times: the graph is kept. The period of a schedule without a flush is
/// a difference of such ends: the whole window is compared. What is left to check is that no price
/// of the cost model rises when the hardware gets faster.
#pragma once

#include <string>
#include <vector>

#include "tests/properties/random_plan.hpp"

namespace meshwright {

struct PropertyLimits {
  std::int64_t ranks = 64;       ///< of plans whose ranks are all simulated
  std::int64_t tasks = 200'000;  ///< larger graphs are not lowered
  /// Reads the texts of model, cluster and trainer again from the plan file; otherwise only the
  /// plan.
  bool reads_all_texts = true;
};

struct PropertyResult {
  bool is_valid = false;            ///< the plan passes check_plan(); otherwise nothing was checked
  bool is_checked = false;          ///< within the limits
  std::vector<std::string> broken;  ///< one line per broken property, with the figures
};
PropertyResult check_properties(const RandomJob& job, const PropertyLimits& limits);

}  // namespace meshwright
