/// A one-line description of a strategy for tables and headings.
#pragma once

#include <string>

#include "core/plan/plan.hpp"

namespace meshwright {

/// "TP8 PP8x3 DP16 SP": parallel sizes above 1; the number after x is the chunks per device.
std::string split_text(const Strategy& strategy);
/// The name of the schedule; "-" for 1F1B without a pipeline, which is plain gradient accumulation.
/// Other schedules are named there, too: they change when gradients become ready.
std::string schedule_text(const Strategy& strategy);
/// "buckets megatron, overlapped gather, TP overlap": options of the axes that differ from their
/// defaults.
std::string options_text(const Strategy& strategy);
/// "TP8 PP8x3 DP16 SP, interleaved-1f1b, micro-batch 1, recompute selective, ZeRO 1, bf16"
std::string strategy_text(const Strategy& strategy);

}  // namespace meshwright
