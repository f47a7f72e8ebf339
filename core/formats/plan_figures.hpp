/// Reads the figures of a plan, as to_json() writes them (core/formats/plan.hpp).
#pragma once

#include <string>
#include <vector>

#include "core/base/json_value.hpp"
#include "core/formats/plan.hpp"

namespace meshwright {

/// Appends its problems at "`place`/KEY"; times are those of whole nanoseconds.
PlanFigures figures_from_json(const JsonValue& value, const std::string& place,
                              std::vector<Diagnostic>& problems);

}  // namespace meshwright
