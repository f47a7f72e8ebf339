/// Two evaluated plans, term by term: what makes one faster, and what makes it larger.
#pragma once

#include <string>
#include <vector>

#include "core/timeline/evaluation.hpp"

namespace meshwright {

template <class Amount>
struct ComparedTerm {
  std::string name;
  Amount a, b;
  Amount change() const { return b - a; }
  friend bool operator==(const ComparedTerm&, const ComparedTerm&) = default;
};

struct EvaluationDifference {
  /// The parts of mean_breakdown(), named by visit_parts(). `a` adds up to the step time of the
  /// first plan exactly, `b` to that of the second.
  std::vector<ComparedTerm<Ticks>> step;
  /// The same, summed up by what a choice can change: "compute", "recomputation", "optimizer",
  /// "waiting for kernel launches", "exposed tp communication" (one per axis), "bubble".
  std::vector<ComparedTerm<Ticks>> causes;
  /// By MemoryClass, each on the plan's own fullest rank: add up to peak_memory() exactly.
  std::vector<ComparedTerm<Bytes>> memory;
  friend bool operator==(const EvaluationDifference&, const EvaluationDifference&) = default;
};
EvaluationDifference difference(const Evaluation& a, const Evaluation& b);
/// By MemoryClass.
std::vector<ComparedTerm<Bytes>> compare_memory(const MemoryAmounts& a, const MemoryAmounts& b);

/// The causes of a change of the step time that are worth naming, largest first.
struct StepChangeReasons {
  std::vector<ComparedTerm<Ticks>> with;     ///< of the same sign as the whole change
  std::vector<ComparedTerm<Ticks>> against;  ///< of the other sign
  friend bool operator==(const StepChangeReasons&, const StepChangeReasons&) = default;
};
/// Leaves out causes below a tenth of the largest. Empty if the step times are equal.
StepChangeReasons reasons_for_change(const EvaluationDifference& difference);

}  // namespace meshwright
