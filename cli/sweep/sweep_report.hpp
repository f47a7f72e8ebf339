/// Figures of a sweep as text, JSON and CSV.
#pragma once

#include <string>
#include <vector>

#include "cli/sweep/sweep_study.hpp"
#include "cli/terminal/document.hpp"
#include "core/formats/plan.hpp"

namespace meshwright {

/// A figure that the table can show.
struct SweepFigure {
  const char* name;
  const char* title;
  std::string (*text)(const PlanFigures&);
  double (*number)(const PlanFigures&);
  bool more_is_better;
};
/// Throws UsageError.
const SweepFigure& sweep_figure_named(const std::string& name);

/// Index of the best point that fits; points.size() if none does.
std::size_t best_point(const SweepStudy& study, const SweepFigure& figure);

Document sweep_text(const SweepStudy& study, const SweepFigure& figure);
std::string sweep_json(const SweepStudy& study, const SweepFigure& figure);
/// Times in seconds, memory in bytes, shares as fractions; empty for invalid combinations.
std::string sweep_csv(const SweepStudy& study);

}  // namespace meshwright
