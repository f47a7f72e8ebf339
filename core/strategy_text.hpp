/// A strategy in the words of the field, for tables and headings.
#pragma once

#include <string>

#include "core/plan.hpp"

namespace meshwright {

/// "TP8 PP8x3 DP16 SP": degrees above 1, chunks per device after the x.
std::string split_text(const Strategy& strategy);
/// "TP8 PP8x3 DP16 SP, interleaved-1f1b, micro-batch 1, recompute selective, ZeRO 1, bf16"
std::string strategy_text(const Strategy& strategy);

}  // namespace meshwright
