#pragma once

#include <algorithm>
#include <vector>

#include "core/base/check.hpp"

namespace meshwright {

/// The upper median if the count is even. `values`: not empty.
template <class Value>
Value upper_median(std::vector<Value> values) {
  MW_CHECK(!values.empty());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace meshwright
