/// Results of `validate` as text, Markdown, JSON and CSV.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/run_errors.hpp"

namespace meshwright {

enum class TableStyle : std::uint8_t { kText, kMarkdown };

struct ValidationReportOptions {
  TableStyle style = TableStyle::kText;
  bool rows = false;  ///< one line per run
};

/// Errors by set, device and trainer and in total; memory; the largest misses with their likely
/// causes; traps and runs that cannot be simulated. Markdown: the tables only.
std::string validation_text(std::span<const ComparedRun> runs,
                            const ValidationReportOptions& options);
std::string validation_json(std::span<const ComparedRun> runs);
/// One line per run; times in seconds, memory in bytes, errors and shares as fractions.
std::string validation_csv(std::span<const ComparedRun> runs);

// ---- limits -------------------------------------------------------------------------------------

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
