/// What a prediction counts for a measured operator, and its typical time.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/kernel.hpp"
#include "models/kineto/kineto_kernels.hpp"

namespace meshwright {

struct Typical {
  double mean = 0;    ///< of the calls that are not warm-up
  double spread = 0;  ///< interquartile range / median
};
Typical typical(std::vector<double> times);

/// Memory traffic of a memory-bound kernel over `elements` of `e` bytes, as the operators of
/// core/operators count it. AdamW: core/lowering/memory.cpp, optimizer_work().
std::int64_t traffic_of(Routine routine, KinetoPass pass, std::int64_t elements, std::int64_t e);

Phase phase_of(Routine routine, KinetoPass pass);

/// Kernels that the host launches for one memory-bound Kernel: see core/operators.
std::int64_t launches_for(Routine routine, KinetoPass pass);

}  // namespace meshwright
