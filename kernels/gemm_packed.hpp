/// The product of two packed matrices: how the cpu kernels multiply. Internal.
///
/// After Goto and van de Geijn ("Anatomy of high-performance matrix multiplication", ACM TOMS
/// 2008): the left matrix is packed into panels of kTileRows rows, the right one into panels of
/// kTileColumns columns, both with the summed index slowest, padded with zeros, as fp32. bf16 is
/// converted while packing, transposition is only another way to read. Every element of the result
/// is one sum over k in ascending order, cut only at multiples of kDepth: it does not depend on the
/// number of rows or columns around it, so cutting rows or columns over ranks changes no bit.
#pragma once

#include "kernels/cpu_vector.hpp"

namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL {
namespace {

#if defined(__AVX512F__)
constexpr std::int64_t kVec = 16;
#elif defined(__AVX2__)
constexpr std::int64_t kVec = 8;
#else
constexpr std::int64_t kVec = 4;
#endif
using Vec [[gnu::vector_size(4 * kVec)]] = float;
// 6 x 2 vectors: 12 sums, 2 vectors of the right matrix and 1 of the left fill 16 registers.
constexpr std::int64_t kTileRows = 6, kTileColumns = 2 * kVec;

MESHWRIGHT_INLINE Vec load_vec(const float* from) {
  Vec v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

/// A matrix to read: element (i, j) is data[i * row_step + j * column_step]; one step is 1.
struct Operand {
  const void* data = nullptr;
  std::int64_t row_step = 0, column_step = 1;
  Dtype dtype = Dtype::kFp32;
};
MESHWRIGHT_INLINE Operand operand(const ConstMatrix& m, bool transposed) {
  return transposed ? Operand{m.data, 1, m.stride, m.dtype} : Operand{m.data, m.stride, 1, m.dtype};
}
MESHWRIGHT_INLINE Operand floats(const float* data, std::int64_t stride, bool transposed = false) {
  return transposed ? Operand{data, 1, stride, Dtype::kFp32}
                    : Operand{data, stride, 1, Dtype::kFp32};
}
MESHWRIGHT_INLINE Operand moved(Operand o, std::int64_t row, std::int64_t column) {
  const std::int64_t offset = row * o.row_step + column * o.column_step;
  o.data = static_cast<const char*>(o.data) + offset * (o.dtype == Dtype::kFp32 ? 4 : 2);
  return o;
}
MESHWRIGHT_INLINE Operand transposed(Operand o) {
  return {o.data, o.column_step, o.row_step, o.dtype};
}

constexpr std::int64_t round_up(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

MESHWRIGHT_INLINE float as_float(float x) { return x; }
MESHWRIGHT_INLINE float as_float(std::uint16_t x) { return from_bf16(x); }

/// Packs rows [0, rows) x columns [0, depth) into panels of `Width` rows: panel p holds, for every
/// column k, elements (p Width + 0..Width-1, k) side by side.
template <std::int64_t Width, class Element>
void pack_panels(const Element* data, std::int64_t row_step, std::int64_t column_step,
                 std::int64_t rows, std::int64_t depth, float* packed) {
  for (std::int64_t first = 0; first < rows; first += Width, packed += Width * depth) {
    const Element* from = data + first * row_step;
    const std::int64_t count = smaller(Width, rows - first);
    if (row_step == 1 && count == Width) {
      for (std::int64_t k = 0; k < depth; ++k)
        for (std::int64_t i = 0; i < Width; ++i)
          packed[k * Width + i] = as_float(from[k * column_step + i]);
      continue;
    }
    for (std::int64_t k = 0; k < depth; ++k)
      for (std::int64_t i = 0; i < Width; ++i)
        packed[k * Width + i] = i < count ? as_float(from[i * row_step + k * column_step]) : 0.0F;
  }
}

template <std::int64_t Width>
void pack(const Operand& o, std::int64_t rows, std::int64_t depth, float* packed) {
  if (o.dtype == Dtype::kFp32)
    pack_panels<Width>(static_cast<const float*>(o.data), o.row_step, o.column_step, rows, depth,
                       packed);
  else
    pack_panels<Width>(static_cast<const std::uint16_t*>(o.data), o.row_step, o.column_step, rows,
                       depth, packed);
}
MESHWRIGHT_INLINE void pack_left(const Operand& o, std::int64_t rows, std::int64_t depth,
                                 float* packed) {
  pack<kTileRows>(o, rows, depth, packed);
}
/// `columns` columns of a right matrix [depth, columns].
MESHWRIGHT_INLINE void pack_right(const Operand& o, std::int64_t depth, std::int64_t columns,
                                  float* packed) {
  pack<kTileColumns>(transposed(o), columns, depth, packed);
}

/// How a tile is written: c = alpha (left right) + beta c; beta = 0 does not read c.
struct Write {
  float alpha = 1, beta = 0;
};

/// One tile [kTileRows, kTileColumns] of the result, of which rows x columns are written. The sums
/// have names, because arrays of vectors do not stay in registers.
inline void multiply_tile(std::int64_t depth, const float* left, const float* right, float* c,
                          std::int64_t stride, std::int64_t rows, std::int64_t columns,
                          Write write) {
  Vec s00{}, s01{}, s10{}, s11{}, s20{}, s21{}, s30{}, s31{}, s40{}, s41{}, s50{}, s51{};
  for (std::int64_t k = 0; k < depth; ++k, left += kTileRows, right += kTileColumns) {
    const Vec b0 = load_vec(right), b1 = load_vec(right + kVec);
    s00 += left[0] * b0, s01 += left[0] * b1;
    s10 += left[1] * b0, s11 += left[1] * b1;
    s20 += left[2] * b0, s21 += left[2] * b1;
    s30 += left[3] * b0, s31 += left[3] * b1;
    s40 += left[4] * b0, s41 += left[4] * b1;
    s50 += left[5] * b0, s51 += left[5] * b1;
  }
  const Vec sums[kTileRows][2] = {{s00, s01}, {s10, s11}, {s20, s21},
                                  {s30, s31}, {s40, s41}, {s50, s51}};
  if (rows == kTileRows && columns == kTileColumns) {
    for (std::int64_t i = 0; i < kTileRows; ++i)
      for (std::int64_t v = 0; v < 2; ++v) {
        float* at = c + i * stride + v * kVec;
        Vec value = write.alpha * sums[i][v];
        if (write.beta != 0) value += write.beta * load_vec(at);
        __builtin_memcpy(at, &value, sizeof value);
      }
    return;
  }
  float tile[kTileRows * kTileColumns];
  __builtin_memcpy(tile, sums, sizeof tile);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      float value = write.alpha * tile[i * kTileColumns + j];
      if (write.beta != 0) value += write.beta * c[i * stride + j];
      c[i * stride + j] = value;
    }
}

/// c [rows, columns] from packed matrices of `depth`; at most a block that caches hold.
inline void multiply_packed(std::int64_t rows, std::int64_t columns, std::int64_t depth,
                            const float* left, const float* right, float* c, std::int64_t stride,
                            Write write) {
  for (std::int64_t j = 0; j < columns; j += kTileColumns)
    for (std::int64_t i = 0; i < rows; i += kTileRows)
      multiply_tile(depth, left + i * depth, right + j * depth, c + i * stride + j, stride,
                    smaller(kTileRows, rows - i), smaller(kTileColumns, columns - j), write);
}

}  // namespace
}  // namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL
