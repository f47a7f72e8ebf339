/// Checks of offsets, which the host can only read for CPU back ends. Internal.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/check.hpp"

namespace meshwright {

/// Row offsets of groups must ascend from 0 to `rows`.
inline void check_offsets(std::span<const std::int64_t> offsets, std::int64_t rows) {
  MW_CHECK(offsets.front() == 0);
  MW_CHECK(offsets.back() == rows);
  for (std::size_t e = 1; e < offsets.size(); ++e) MW_CHECK(offsets[e - 1] <= offsets[e]);
}

}  // namespace meshwright
