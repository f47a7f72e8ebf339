/// The constants that published runs share, fitted to all of them together, and how well runs are
/// predicted by a fit that has not seen their source or their model.
///
/// Each source counts as the square root of its number of runs, so that none decides alone; runs
/// with assumed options or of less trust count less. The constants:
/// cli/validation/shared_constants.hpp.
#pragma once

#include <string>
#include <vector>

#include "cli/terminal/document.hpp"
#include "cli/validation/predict_runs.hpp"
#include "simulator/fit/error_bars.hpp"

namespace meshwright {

struct FittedConstant {
  std::string file, key;
  double in_file = 1, typical = 1;  ///< as in SharedConstant
  double factor = 1;                ///< on the value in the file
  double uncertainty = 0;           ///< one standard deviation of ln(factor)
};
/// Errors of one run: predicted / measured - 1.
struct LeftOutError {
  std::size_t job = 0;  ///< in LoadedRuns::jobs
  double now = 0;       ///< with the values in the files
  double fitted = 0;
  double without_source = 0, without_model = 0;
  JobTraits traits;
};
struct RunFit {
  std::vector<FittedConstant> constants;
  std::vector<LeftOutError> errors;  ///< of the runs with a measured time that are no traps
};
/// `steps`: at most so many derivatives of all predictions; 0: keeps the values in the files, and
/// asks only what they would be without each source and model.
RunFit fit_runs(const LoadedRuns& runs, int steps, int threads);

/// The runs with the errors of predictions that have not seen their source, for error bars.
std::vector<ValidatedRun> validated_runs(const LoadedRuns& runs, const RunFit& fit);

/// Tables of the constants, and of errors by set: now, in the fit, without the source, without the
/// model, and how many of the runs with an error bar are inside their p10 to p90.
Document fit_text(const LoadedRuns& runs, const RunFit& fit);

}  // namespace meshwright
