/// The reports of a rank on its training run, to be assembled by GatheredReports.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "core/base/memory_amounts.hpp"
#include "executor/tasks/rank_run.hpp"

namespace meshwright {

/// A training step, or its completed part if the run ended early.
struct StepReport {
  int step = 0;
  bool is_whole = false;
  double loss = 0;
  std::optional<double> gradient_norm = {};    ///< over all parameters, before clipping
  std::optional<double> validation_loss = {};  ///< mean over held-out tokens, after the step
  Bytes peak_memory = {};                      ///< of this rank, so far
  std::vector<TaskSpan> spans;                 ///< of the rank's completed tasks
  friend bool operator==(const StepReport&, const StepReport&) = default;
};

/// Consecutive elements of a parameter, by index in the unsharded parameter.
struct ParameterValues {
  TensorId tensor;
  std::int64_t first = 0;
  std::vector<float> values;
  friend bool operator==(const ParameterValues&, const ParameterValues&) = default;
};

struct EndReport {
  MemoryAmounts peak_memory;
  std::vector<ParameterValues> parameters;
  std::optional<double> validation_loss = {};  ///< of a run of no steps
  friend bool operator==(const EndReport&, const EndReport&) = default;
};

/// Adds one element; consecutive elements are merged.
void add_element(std::vector<ParameterValues>& parameters, TensorId tensor, std::int64_t number,
                 float value);

using RunReport = std::variant<StepReport, EndReport>;
std::vector<std::byte> to_bytes(const RunReport& report);
RunReport run_report_from(std::span<const std::byte> bytes);

}  // namespace meshwright
