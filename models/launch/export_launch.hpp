/// Launches of training programs that work as they stand: model, parallelism, precision, batch,
/// environment and mock data, for the nodes of the plan's cluster.
///
/// Versions: those of launch_text.hpp, and Megatron-Bridge 0.3.1, accelerate 1.15.0, PyTorch 2.6.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"
#include "models/launch/launch_job.hpp"
#include "models/launch/launch_text.hpp"

namespace meshwright {

struct ExportTarget {
  std::string_view word;  ///< "megatron-bridge"
  std::string_view name;  ///< with the version
  std::string_view help;
  std::string_view trainer = {};  ///< profile whose abilities decide; empty: `refusals` alone
  std::vector<std::string> (*refusals)(const Plan&) = nullptr;  ///< what it cannot run at all
  LaunchText (*write)(const LaunchJob&) = nullptr;
};
const std::vector<ExportTarget>& export_targets();
const ExportTarget* find_export_target(std::string_view word);  ///< null if unknown

/// Why the program cannot run the plan: differences in schedule, parallelism, memory or placement,
/// not of options that only change the step time. Empty if it can. `where` as in check_plan().
std::vector<Diagnostic> export_problems(const ExportTarget& target, const Plan& plan,
                                        std::string_view where);

/// The launch; what it cannot express is in `unsupported`, and in its comments where the format has
/// comments. InputError if the program cannot build the model.
LaunchText export_launch(const ExportTarget& target, const LaunchJob& job);

}  // namespace meshwright
