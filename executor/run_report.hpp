/// What a rank reports of a training run to whoever puts the reports together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "core/memory_amounts.hpp"
#include "executor/rank_run.hpp"

namespace meshwright {

/// A training step, or its beginning if it came no further.
struct StepReport {
  int step = 0;
  bool is_whole = false;
  double loss = 0;
  std::vector<TaskSpan> spans;  ///< of the rank's tasks that have ended
  friend bool operator==(const StepReport&, const StepReport&) = default;
};

/// Consecutive elements of a parameter, by their numbers in the whole of it.
struct ParameterValues {
  TensorId tensor;
  std::int64_t first = 0;
  std::vector<float> values;
  friend bool operator==(const ParameterValues&, const ParameterValues&) = default;
};

struct EndReport {
  MemoryAmounts peak_memory;
  std::vector<ParameterValues> parameters;
  friend bool operator==(const EndReport&, const EndReport&) = default;
};

/// Adds one element; those that follow each other lie together.
void add_element(std::vector<ParameterValues>& parameters, TensorId tensor, std::int64_t number,
                 float value);

using RunReport = std::variant<StepReport, EndReport>;
std::vector<std::byte> to_bytes(const RunReport& report);
RunReport run_report_from(std::span<const std::byte> bytes);

}  // namespace meshwright
