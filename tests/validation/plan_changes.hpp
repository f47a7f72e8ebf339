/// Strategies near another one: with one or two other flags.
#pragma once

#include <cstddef>
#include <vector>

#include "core/plan/plan.hpp"

namespace meshwright {

/// One other value of one flag, or of two parallel sizes with the same number of GPUs: the changes
/// that `explain` shows, and options that it leaves out. Not all are valid; none is `base`.
std::vector<Strategy> changed_once(const Strategy& base);

struct ChangedStrategies {
  std::vector<Strategy> strategies;  ///< distinct: those with one change, then those with two
  std::size_t left_out = 0;          ///< beyond the cap
};

/// A change may be valid only together with another: `base` is changed once, and every result,
/// valid or not, once more. At most `most` strategies; the ones left out are random ones with two
/// changes.
ChangedStrategies changed_at_most_twice(const Strategy& base, std::size_t most);

}  // namespace meshwright
