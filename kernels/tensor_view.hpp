/// Non-owning views of tensors: pointer, sizes and dtype.
///
/// A matrix consists of rows of `columns` contiguous elements; consecutive rows start `stride`
/// elements apart, so that queries, keys and values may be column ranges of one buffer. Activations
/// are matrices with one row per token (row b T + t), parameters are matrices [in, out] or vectors.
/// Every kernel accepts fp32 and bf16 storage, except where an argument is a std::span<float>.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "core/base/check.hpp"
#include "core/base/dtype.hpp"
#include "core/base/units.hpp"

namespace meshwright {

struct ConstVector {
  const void* data = nullptr;
  std::int64_t size = 0;
  Dtype dtype = Dtype::kFp32;
  bool empty() const { return size == 0; }
};

struct Vector {
  void* data = nullptr;
  std::int64_t size = 0;
  Dtype dtype = Dtype::kFp32;
  bool empty() const { return size == 0; }
  operator ConstVector() const { return {data, size, dtype}; }
};

struct ConstMatrix {
  const void* data = nullptr;
  std::int64_t rows = 0, columns = 0;
  std::int64_t stride = 0;  ///< elements; at least `columns`
  Dtype dtype = Dtype::kFp32;
  bool empty() const { return rows == 0 || columns == 0; }
};

struct Matrix {
  void* data = nullptr;
  std::int64_t rows = 0, columns = 0;
  std::int64_t stride = 0;  ///< elements; at least `columns`
  Dtype dtype = Dtype::kFp32;
  bool empty() const { return rows == 0 || columns == 0; }
  operator ConstMatrix() const { return {data, rows, columns, stride, dtype}; }
};

/// A matrix without gaps between its rows.
inline Matrix dense_matrix(void* data, std::int64_t rows, std::int64_t columns, Dtype dtype) {
  return {data, rows, columns, columns, dtype};
}
inline ConstMatrix dense_matrix(const void* data, std::int64_t rows, std::int64_t columns,
                                Dtype dtype) {
  return {data, rows, columns, columns, dtype};
}

namespace view_detail {
template <class View>
View part(View m, std::int64_t first_row, std::int64_t rows, std::int64_t first_column,
          std::int64_t columns) {
  MW_CHECK(first_row >= 0 && rows >= 0 && first_row + rows <= m.rows);
  MW_CHECK(first_column >= 0 && columns >= 0 && first_column + columns <= m.columns);
  const std::int64_t offset = (first_row * m.stride + first_column) * bytes_per_element(m.dtype);
  if (m.data != nullptr) {
    using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(m.data)>>,
                                    const std::byte, std::byte>;
    m.data = static_cast<Byte*>(m.data) + offset;
  }
  m.rows = rows;
  m.columns = columns;
  return m;
}
}  // namespace view_detail

/// Rows [first, first + count) of a matrix.
inline Matrix rows_of(const Matrix& m, std::int64_t first, std::int64_t count) {
  return view_detail::part(m, first, count, 0, m.columns);
}
inline ConstMatrix rows_of(const ConstMatrix& m, std::int64_t first, std::int64_t count) {
  return view_detail::part(m, first, count, 0, m.columns);
}
/// Columns [first, first + count) of a matrix.
inline Matrix columns_of(const Matrix& m, std::int64_t first, std::int64_t count) {
  return view_detail::part(m, 0, m.rows, first, count);
}
inline ConstMatrix columns_of(const ConstMatrix& m, std::int64_t first, std::int64_t count) {
  return view_detail::part(m, 0, m.rows, first, count);
}
/// Elements [first, first + count) of a vector.
inline Vector part_of(Vector v, std::int64_t first, std::int64_t count) {
  MW_CHECK(first >= 0 && count >= 0 && first + count <= v.size);
  if (v.data != nullptr)
    v.data = static_cast<std::byte*>(v.data) + first * bytes_per_element(v.dtype);
  v.size = count;
  return v;
}
inline ConstVector part_of(ConstVector v, std::int64_t first, std::int64_t count) {
  MW_CHECK(first >= 0 && count >= 0 && first + count <= v.size);
  if (v.data != nullptr)
    v.data = static_cast<const std::byte*>(v.data) + first * bytes_per_element(v.dtype);
  v.size = count;
  return v;
}

/// All elements of a matrix without gaps, as one vector.
inline Vector flat(const Matrix& m) {
  MW_CHECK(m.stride == m.columns || m.rows <= 1);
  return {m.data, m.rows * m.columns, m.dtype};
}
inline ConstVector flat(const ConstMatrix& m) {
  MW_CHECK(m.stride == m.columns || m.rows <= 1);
  return {m.data, m.rows * m.columns, m.dtype};
}

/// The elements of an fp32 vector, or of an fp32 matrix without gaps.
inline std::span<float> floats_of(const Vector& v) {
  return {static_cast<float*>(v.data), static_cast<std::size_t>(v.size)};
}
inline std::span<float> floats_of(const Matrix& m) {
  return {static_cast<float*>(m.data), static_cast<std::size_t>(m.rows * m.columns)};
}
inline std::span<std::byte> bytes_of(const Vector& v) {
  return {static_cast<std::byte*>(v.data),
          static_cast<std::size_t>(v.size * bytes_per_element(v.dtype))};
}
/// Bytes of the elements of one row.
inline std::size_t row_bytes_of(const ConstMatrix& m) {
  return static_cast<std::size_t>(m.columns * bytes_per_element(m.dtype));
}

}  // namespace meshwright
