/// `*.plan.json`: one file is enough to simulate, run, export or show a plan again. It carries the
/// model's config and the cluster's TOML as text, the plan, the predicted figures and where the
/// cost model is from. Keys of `strategy` are the command line's flags with underscores.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/evaluation.hpp"
#include "core/plan.hpp"

namespace meshwright {

/// One entry of `plans` in `plan --json`; times integer nanoseconds (Ticks are rounded to nearest
/// on writing; times in whole nanoseconds come back exactly), sizes integer bytes, ratios doubles.
struct PlanFigures {
  Strategy strategy;
  Ticks step_time, period;
  double tokens_per_second_per_gpu = 0;
  double model_tflops_per_gpu = 0;
  double mfu = 0, hfu = 0;
  double bubble_of_period = 0, bubble_of_makespan = 0;
  std::array<double, kAxisCount> exposed_communication{};  ///< share of the step, by Axis
  Bytes peak_memory, memory_capacity;
  std::vector<Bytes> peak_memory_per_stage;  ///< by pipeline position
  std::string why;
  friend bool operator==(const PlanFigures&, const PlanFigures&) = default;
};
PlanFigures figures_of(const Strategy& strategy, const Evaluation& evaluation, std::string why);

struct PlanFile {
  std::string model_name, model_config;    ///< HuggingFace config.json text
  std::string cluster_name, cluster_toml;  ///< cluster file text
  Plan plan;
  std::optional<PlanFigures> predicted;
  std::string cost_model;  ///< provenance
  /// Text of core/calibration.hpp that the plan was made with, so that the file stands alone;
  /// empty: the cluster's figures say it all.
  std::string calibration = {};
  friend bool operator==(const PlanFile&, const PlanFile&) = default;
};

/// JSON text, keys in a fixed order, `schema` first. `indent` < 0: one line.
std::string to_json(const PlanFile& file);
std::string to_json(const PlanFigures& figures, int indent = 2);
std::string to_json(const Strategy& strategy, int indent = 2);
/// Throws InputError: JSON pointer or line:column, expected and got, nearest key.
PlanFile plan_file_from_json(std::string_view text, std::string_view where);

}  // namespace meshwright
