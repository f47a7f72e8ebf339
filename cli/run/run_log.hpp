/// `run --log FILE`: the figures of every step as JSON lines.
#pragma once

#include <fstream>
#include <string>

#include "cli/run/run_results.hpp"

namespace meshwright {

/// What converts the time of a step to rates.
struct StepRates {
  std::int64_t tokens_per_step = 0;
  Flops model_flops_per_step;
  FlopsPerSecond peak;  ///< of all devices of the job; 0: unknown

  double tokens_per_second(const MeasuredStep& step) const;
  /// Model FLOP utilization; nullopt if the peak is unknown.
  std::optional<double> mfu(const MeasuredStep& step) const;
};
StepRates step_rates(const Job& job);

/// UsageError or InputError if --log cannot be written.
void check_log(const std::string& file);

/// One line of the log.
std::string log_line(std::int64_t step, const MeasuredStep& measured, const StepRates& rates);

/// The lines of a log up to `step`: what a run that resumes there appends to. InputError if a line
/// has no step.
std::string log_before(const std::string& log, std::int64_t step, const std::string& where);

class RunLog {
 public:
  /// No log if `file` is empty. Removes the lines from `first_step` on, all of them if it is 0.
  RunLog(const std::string& file, std::int64_t first_step);
  void write(const std::string& line);

 private:
  std::string file_;
  std::ofstream stream_;
  bool has_warned_ = false;
};

}  // namespace meshwright
