/// Mean errors of all sets of published runs, stored so that a change that makes predictions worse
/// is noticed.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/validation/run_errors.hpp"

namespace meshwright {

/// Mean errors of one set, as stored for later comparison.
struct SetAccuracy {
  std::size_t runs = 0, memory_runs = 0;  ///< with a time error; with a memory error
  double time_error = 0, memory_error = 0;
  friend bool operator==(const SetAccuracy&, const SetAccuracy&) = default;
};
using AccuracyBaseline = std::map<std::string, SetAccuracy>;  ///< by name of the set

/// Largest increase of a set's mean error over its baseline.
inline constexpr double kLargestIncrease = 0.005;

AccuracyBaseline accuracy_of(std::span<const ComparedRun> runs);
std::string to_json(const AccuracyBaseline& baseline);
/// InputError with the JSON pointer.
AccuracyBaseline accuracy_baseline_from_json(std::string_view text, std::string_view where);
/// One line per set of `now` that is worse than its baseline: a mean error that grew by more than
/// kLargestIncrease, or fewer runs that are predicted.
std::vector<std::string> worse_sets(const AccuracyBaseline& now, const AccuracyBaseline& baseline);

}  // namespace meshwright
