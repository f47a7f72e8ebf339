/// Checks of the views in a kernel's arguments, for the check() next to each struct of arguments.
/// A violation is a bug of the caller (MW_CHECK). Contents are not checked.
#pragma once

#include <initializer_list>
#include <span>

#include "core/base/check.hpp"
#include "kernels/tensor_view.hpp"

namespace meshwright {

inline void check_storage(Dtype dtype) { MW_CHECK(dtype == Dtype::kFp32 || dtype == Dtype::kBf16); }

inline void check_view(const ConstMatrix& m) {
  check_storage(m.dtype);
  MW_CHECK(m.rows >= 0 && m.columns >= 0);
  MW_CHECK(m.stride >= m.columns || m.rows <= 1);
  MW_CHECK(m.data != nullptr || m.empty());
}
inline void check_view(const ConstVector& v) {
  check_storage(v.dtype);
  MW_CHECK(v.size >= 0);
  MW_CHECK(v.data != nullptr || v.empty());
}
inline void check_shape(const ConstMatrix& m, std::int64_t rows, std::int64_t columns) {
  check_view(m);
  MW_CHECK(m.rows == rows);
  MW_CHECK(m.columns == columns);
}
inline void check_same_shape(const ConstMatrix& like, std::initializer_list<ConstMatrix> others) {
  check_view(like);
  for (const ConstMatrix& m : others) check_shape(m, like.rows, like.columns);
}
inline void check_size(const ConstVector& v, std::int64_t size) {
  check_view(v);
  MW_CHECK(v.size == size);
}
template <class T>
void check_size(std::span<T> values, std::int64_t size) {
  MW_CHECK(std::ssize(values) == size);
}
template <class T>
void check_size_or_empty(std::span<T> values, std::int64_t size) {
  MW_CHECK(values.empty() || std::ssize(values) == size);
}

/// Row offsets of groups must ascend from 0 to `rows`. The host can only read them on CPUs, so this
/// is part of their kernels.
inline void check_offsets(std::span<const std::int64_t> offsets, std::int64_t rows) {
  MW_CHECK(offsets.front() == 0);
  MW_CHECK(offsets.back() == rows);
  for (std::size_t e = 1; e < offsets.size(); ++e) MW_CHECK(offsets[e - 1] <= offsets[e]);
}

}  // namespace meshwright
