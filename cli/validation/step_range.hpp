/// The range in which the step time of a plan is expected, as a file: --watch of `run` and
/// `compare` fails a job in continuous integration when the measured step time leaves it.
///
/// {"schema": 1, "model": "gpt2", "strategy": "PP2, 1f1b, …",
///  "step_time": {"predicted_ns": 100, "lowest_ns": 90, "highest_ns": 110},
///  "source": "predicted step time -10.0 % to +10.0 %"}
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/formats/plan.hpp"

namespace meshwright {

struct StepRange {
  std::string model, strategy;  ///< strategy_text(); only steps of this strategy are checked
  Ticks predicted, lowest, highest;
  std::string source;  ///< of the limits
  friend bool operator==(const StepRange&, const StepRange&) = default;
};

/// The prediction and `tolerance` of it to both sides; without one, p10 to p90 of published runs.
/// InputError if the prediction has neither.
StepRange step_range_of(const std::string& model, const PlanFigures& figures,
                        std::optional<double> tolerance);
std::string to_json(const StepRange& range);
/// InputError with the JSON pointer.
StepRange step_range_from_json(std::string_view text, std::string_view where);
StepRange read_step_range(const std::string& file);

/// "step time 120 ms is above the predicted range of 90 ms to 110 ms in FILE\n"; empty inside of
/// it.
std::string outside_range_text(const StepRange& range, Ticks measured, std::string_view file);
/// InputError if the measured step is one of another model or strategy.
void check_range_belongs_to(const StepRange& range, std::string_view model,
                            std::string_view strategy, std::string_view file);

}  // namespace meshwright
