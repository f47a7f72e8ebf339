/// `run --tensorboard FOLDER`: the figures of every step as an event file of TensorBoard.
#pragma once

#include <fstream>
#include <string>

#include "cli/run/run_log.hpp"
#include "core/formats/tfevents.hpp"

namespace meshwright {

/// InputError if no file can be written to the folder, which is created later.
void check_tensorboard(const std::string& folder);

/// The figures of a step by tag, without those that are unknown.
ScalarEvent scalars_of(std::int64_t step, const MeasuredStep& measured, const StepRates& rates);

class TensorBoardLog {
 public:
  /// No file if `folder` is empty; else a new one. `first_step`: of this run; figures of later
  /// steps in other files of the folder are dropped.
  TensorBoardLog(const std::string& folder, std::int64_t first_step);
  void write(ScalarEvent event);

 private:
  void append(const std::string& record);

  std::string file_;
  std::ofstream stream_;
  bool has_warned_ = false;
};

}  // namespace meshwright
