/// One element of a view as a double: for the reference kernels. Internal to this folder.
#pragma once

#include "kernels/bfloat16.hpp"
#include "kernels/tensor_view.hpp"

namespace meshwright {

inline double element(const void* data, std::int64_t i, Dtype dtype) {
  if (dtype == Dtype::kFp32) return static_cast<const float*>(data)[i];
  return from_bf16(static_cast<const std::uint16_t*>(data)[i]);
}
inline void set_element(void* data, std::int64_t i, Dtype dtype, double value) {
  if (dtype == Dtype::kFp32)
    static_cast<float*>(data)[i] = static_cast<float>(value);
  else
    static_cast<std::uint16_t*>(data)[i] = to_bf16(static_cast<float>(value));
}

inline double at(const ConstVector& v, std::int64_t i) { return element(v.data, i, v.dtype); }
inline double at(const ConstMatrix& m, std::int64_t row, std::int64_t column) {
  return element(m.data, row * m.stride + column, m.dtype);
}
inline void put(const Vector& v, std::int64_t i, double value) {
  set_element(v.data, i, v.dtype, value);
}
inline void put(const Matrix& m, std::int64_t row, std::int64_t column, double value) {
  set_element(m.data, row * m.stride + column, m.dtype, value);
}
inline void add_to(const Matrix& m, std::int64_t row, std::int64_t column, double value) {
  put(m, row, column, at(m, row, column) + value);
}

/// Element of a span by a 64-bit index, unsigned or not.
template <class Span>
auto& get(Span&& span, std::int64_t i) {
  return span[static_cast<std::size_t>(i)];
}

}  // namespace meshwright
