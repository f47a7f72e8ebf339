/// fp32 matrix products by Eigen, used by the CPU kernels for matrix products and attention.
/// Internal.
#pragma once

#include "kernels/cpu/vector.hpp"

namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL {

/// A matrix as it is stored, row by row.
struct Factor {
  const float* data = nullptr;
  std::int64_t stride = 0;
  bool transposed = false;
};

/// c = scale op(a) op(b), or added to it; op(a) is [m, k], op(b) [k, n].
struct FloatProduct {
  std::int64_t m = 0, n = 0, k = 0;
  Factor a = {}, b = {};
  float* c = nullptr;
  std::int64_t stride = 0;  ///< of c
  float scale = 1;
  bool adds = false;  ///< else the previous contents of c are ignored
};
void multiply(const FloatProduct& product);

/// Rows x columns of op(m) from (row, column) on, as floats: in place, or converted into `buffer`
/// without gaps.
Factor factor_of(const ConstMatrix& m, bool transposed, std::int64_t row, std::int64_t column,
                 std::int64_t rows, std::int64_t columns, float* buffer);

}  // namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL
