/// A step of lower(), and how steps are run, checked and reported.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/lowering/lower.hpp"

namespace meshwright {

struct LoweringContext;

struct LoweringPass {
  std::string_view name;
  void (*run)(LoweringContext& context);
};
std::span<const LoweringPass> lowering_passes();
/// The passes up to and including the one of this name, which must exist.
std::span<const LoweringPass> lowering_passes_until(std::string_view last);

/// With LoweringOptions::check_each_pass, throws InternalError that names the first pass after
/// which check_task_graph() finds something. Appends to `reports` unless it is null.
void run_passes(std::span<const LoweringPass> passes, LoweringContext& context,
                std::vector<PassReport>* reports = nullptr);

}  // namespace meshwright
