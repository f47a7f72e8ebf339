/// `*.plan.json`: a self-contained plan that can be simulated, run, exported or shown again. It
/// contains the model's config and the cluster's TOML as text, the plan, the predicted figures, and
/// the provenance of the cost model. Keys of `strategy` are the command-line flags with
/// underscores.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json_value.hpp"
#include "core/plan/plan.hpp"
#include "core/timeline/evaluation.hpp"

namespace meshwright {

/// Where the measured step time is expected: p10 to p90 of the errors of published runs that
/// resemble the job (simulator/fit/error_bars.hpp).
struct StepTimeRange {
  Ticks p10, p90;
  int validated_runs = 0;  ///< that the job resembles
  friend bool operator==(const StepTimeRange&, const StepTimeRange&) = default;
};

/// One entry of `plans` in `plan --json`. Times are written as integer nanoseconds (rounded to
/// nearest; whole nanoseconds round-trip exactly), sizes as integer bytes, ratios as doubles.
struct PlanFigures {
  Strategy strategy;
  Ticks step_time, period;
  double tokens_per_second_per_gpu = 0;
  double model_tflops_per_gpu = 0;
  double mfu = 0, hfu = 0;
  double bubble_of_period = 0,
         bubble_of_makespan = 0;   ///< means over ranks: core/timeline/evaluation.hpp
  double busiest_rank_bubble = 0;  ///< of the period
  std::array<double, kAxisCount> exposed_communication{};  ///< share of the step, by Axis
  Bytes peak_memory, memory_capacity;  ///< on the device: with context, communicators
  Bytes peak_memory_allocated, peak_memory_reserved;  ///< by PyTorch's allocator
  std::vector<Bytes> peak_memory_per_stage;           ///< by pipeline rank
  std::string why;
  std::optional<StepTimeRange> range = {};  ///< absent: unvalidated
  friend bool operator==(const PlanFigures&, const PlanFigures&) = default;
};
PlanFigures figures_of(const Strategy& strategy, const Evaluation& evaluation, std::string why);

struct PlanFile {
  std::string model_name, model_config;    ///< HuggingFace config.json text
  std::string cluster_name, cluster_toml;  ///< cluster file text
  Plan plan;
  std::optional<PlanFigures> predicted;
  std::string cost_model;  ///< provenance
  /// The calibration used for the plan, as JSON text (core/cost/calibration.hpp); empty if the plan
  /// was made with the cluster's figures alone.
  std::string calibration = {};
  /// The trainer profile (TOML); empty in files of earlier versions.
  std::string trainer_name = {}, trainer_toml = {};
  friend bool operator==(const PlanFile&, const PlanFile&) = default;
};

/// JSON text with keys in a fixed order, `schema` first. `indent` < 0: on a single line.
std::string to_json(const PlanFile& file);
std::string to_json(const PlanFigures& figures, int indent = 2);
std::string to_json(const Strategy& strategy, int indent = 2);
/// Throws InputError with the JSON pointer or line:column, the expected and the actual value, and
/// for unknown keys the nearest known key.
PlanFile plan_file_from_json(std::string_view text, std::string_view where);
/// Reads a `strategy` object. Appends its problems at "`place`/KEY"; with none, the result is valid
/// on its own terms (see check_plan() for the rest).
Strategy strategy_from_json(const JsonValue& value, const std::string& place,
                            std::vector<Diagnostic>& problems);
/// Reads figures, likewise; times are those of whole nanoseconds.
PlanFigures figures_from_json(const JsonValue& value, const std::string& place,
                              std::vector<Diagnostic>& problems);

}  // namespace meshwright
