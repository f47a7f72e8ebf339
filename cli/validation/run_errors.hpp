/// Errors of predictions for published runs, summarized.
///
/// Relative error of a run: predicted / measured - 1; negative: the prediction is too fast or too
/// small. Runs of the same model, GPUs, batch and sequence length (and group) of one source form a
/// job: they differ in strategy only, as the candidates of a search do.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/validation/predict_runs.hpp"

namespace meshwright {

struct ComparedRun {
  const PublishedSet* set = nullptr;
  const PublishedRun* run = nullptr;
  const RunPrediction* prediction = nullptr;
  std::string job;                     ///< key of the job, see above
  std::optional<double> time_error;    ///< absent: not measured, not simulated, or a trap
  std::optional<double> memory_error;  ///< likewise
};
/// One entry per job of `runs`, with its prediction.
std::vector<ComparedRun> compare_runs(const LoadedRuns& runs,
                                      std::span<const RunPrediction> predictions);

/// All but `count` are fractions, not percent.
struct ErrorSummary {
  std::size_t count = 0;
  double mean = 0, median = 0;  ///< of the absolute errors
  double worst = 0;             ///< the largest absolute error, with its sign
  double bias = 0;              ///< mean of the signed errors
  /// Rank correlation of measured and predicted times inside jobs of at least kFewestToRank runs,
  /// mean weighted by runs.
  std::optional<double> spearman;
  /// Measured time of the run predicted to be the fastest over that of the fastest run, minus one:
  /// mean and worst over jobs of at least kFewestToChoose runs.
  std::optional<double> mean_regret, worst_regret;
};
inline constexpr std::size_t kFewestToRank = 5, kFewestToChoose = 3;
/// Of the runs with a time error.
ErrorSummary summarize_times(std::span<const ComparedRun> runs);

struct MemorySummary {
  ErrorSummary errors;                                         ///< without correlation and regret
  std::size_t out_of_memory = 0, predicted_out_of_memory = 0;  ///< measured; of those, predicted
  std::size_t ran = 0, wrongly_out_of_memory = 0;  ///< finished; of those, predicted not to fit
};
MemorySummary summarize_memory(std::span<const ComparedRun> runs);

/// Rank correlation with mean ranks for ties; absent if one side is constant.
std::optional<double> spearman_correlation(std::span<const double> a, std::span<const double> b);

}  // namespace meshwright
