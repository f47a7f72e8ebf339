/// Rows of fp32 or bf16 as chunks of floats, and functions that the compiler can vectorize.
/// Internal to the CPU kernels.
///
/// Every kernel source of kernels/cpu is compiled once per instruction-set level
/// (MESHWRIGHT_CPU_LEVEL: `generic`, and on x86-64 `avx2` and `avx512`), each into its own
/// namespace; levels.cpp picks one at run time. To keep instructions of newer processors out of the
/// code for older ones, this code must not call anything that the linker could merge across levels:
/// no standard-library inline functions that might not get inlined, and everything here is in an
/// unnamed namespace.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/bfloat16.hpp"
#include "kernels/kernel_table.hpp"

#ifndef MESHWRIGHT_CPU_LEVEL
#define MESHWRIGHT_CPU_LEVEL generic
#endif

namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL {
namespace {

#define MESHWRIGHT_INLINE [[gnu::always_inline]] inline

// Before a loop with independent iterations: views are identical or do not overlap.
#ifdef __clang__
#define MESHWRIGHT_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define MESHWRIGHT_INDEPENDENT _Pragma("GCC ivdep")
#endif

/// Elements converted at a time: three float buffers of this size fit in the L1 cache.
constexpr std::int64_t kChunk = 512;

/// Rows summed in a block before they are added to the total: rounding errors grow with the number
/// of blocks plus the rows of a block, not with all rows.
constexpr std::int64_t kRowsOfBlock = 64;

struct alignas(64) Chunk {
  float values[kChunk];
};

MESHWRIGHT_INLINE std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
MESHWRIGHT_INLINE float larger(float a, float b) { return a > b ? a : b; }

/// Calls body(first, count) for chunks of [0, size).
template <class Body>
MESHWRIGHT_INLINE void for_each_chunk(std::int64_t size, const Body& body) {
  for (std::int64_t first = 0; first < size; first += kChunk)
    body(first, smaller(kChunk, size - first));
}

/// `count` <= kChunk elements as floats: in place if they are floats, else converted into `buffer`.
MESHWRIGHT_INLINE const float* load(const void* data, std::int64_t first, std::int64_t count,
                                    Dtype dtype, Chunk& buffer) {
  if (dtype == Dtype::kFp32) return static_cast<const float*>(data) + first;
  const std::uint16_t* from = static_cast<const std::uint16_t*>(data) + first;
  for (std::int64_t i = 0; i < count; ++i) buffer.values[i] = from_bf16(from[i]);
  return buffer.values;
}
MESHWRIGHT_INLINE const float* load(const ConstMatrix& m, std::int64_t row, std::int64_t first,
                                    std::int64_t count, Chunk& buffer) {
  return load(m.data, row * m.stride + first, count, m.dtype, buffer);
}
MESHWRIGHT_INLINE const float* load(const ConstVector& v, std::int64_t first, std::int64_t count,
                                    Chunk& buffer) {
  return load(v.data, first, count, v.dtype, buffer);
}

/// Where to compute results: the view itself if it holds floats, else `buffer`, from which store()
/// rounds them.
MESHWRIGHT_INLINE float* target(void* data, std::int64_t first, Dtype dtype, Chunk& buffer) {
  return dtype == Dtype::kFp32 ? static_cast<float*>(data) + first : buffer.values;
}
MESHWRIGHT_INLINE void store(void* data, std::int64_t first, std::int64_t count, Dtype dtype,
                             const float* values) {
  if (dtype == Dtype::kFp32) return;
  std::uint16_t* to = static_cast<std::uint16_t*>(data) + first;
  // The analyzer does not see that loops over the same count wrote all values.
  // NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage)
  for (std::int64_t i = 0; i < count; ++i) to[i] = to_bf16(values[i]);
}
MESHWRIGHT_INLINE float* target(const Matrix& m, std::int64_t row, std::int64_t first,
                                Chunk& buffer) {
  return target(m.data, row * m.stride + first, m.dtype, buffer);
}
MESHWRIGHT_INLINE void store(const Matrix& m, std::int64_t row, std::int64_t first,
                             std::int64_t count, const float* values) {
  store(m.data, row * m.stride + first, count, m.dtype, values);
}
MESHWRIGHT_INLINE float* target(const Vector& v, std::int64_t first, Chunk& buffer) {
  return target(v.data, first, v.dtype, buffer);
}
MESHWRIGHT_INLINE void store(const Vector& v, std::int64_t first, std::int64_t count,
                             const float* values) {
  store(v.data, first, count, v.dtype, values);
}

/// y = value(a, b), row by row.
template <class Value>
MESHWRIGHT_INLINE void combine(const ConstMatrix& a, const ConstMatrix& b, const Matrix& y,
                               const Value& value) {
  Chunk a_buffer, b_buffer, y_buffer;
  for (std::int64_t row = 0; row < y.rows; ++row)
    for_each_chunk(y.columns, [&](std::int64_t first, std::int64_t count) {
      const float* u = load(a, row, first, count, a_buffer);
      const float* v = load(b, row, first, count, b_buffer);
      float* to = target(y, row, first, y_buffer);
      MESHWRIGHT_INDEPENDENT
      for (std::int64_t i = 0; i < count; ++i) to[i] = value(u[i], v[i]);
      store(y, row, first, count, to);
    });
}

/// A single element.
MESHWRIGHT_INLINE float element_of(const ConstMatrix& m, std::int64_t row, std::int64_t column) {
  const std::int64_t i = row * m.stride + column;
  if (m.dtype == Dtype::kFp32) return static_cast<const float*>(m.data)[i];
  return from_bf16(static_cast<const std::uint16_t*>(m.data)[i]);
}

MESHWRIGHT_INLINE float element_of(const ConstVector& v, std::int64_t i) {
  if (v.dtype == Dtype::kFp32) return static_cast<const float*>(v.data)[i];
  return from_bf16(static_cast<const std::uint16_t*>(v.data)[i]);
}

/// Sums in kLanes partial sums that are then added pairwise: the same order on every level.
constexpr int kLanes = 16;

struct Lanes {
  float sum[kLanes] = {};

  /// Adds value(i) for i in [0, count): element i goes to lane i mod kLanes.
  template <class Value>
  MESHWRIGHT_INLINE void add(std::int64_t count, const Value& value) {
    std::int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes)
      for (int lane = 0; lane < kLanes; ++lane) sum[lane] += value(i + lane);
    for (int lane = 0; i + lane < count; ++lane) sum[lane] += value(i + lane);
  }
  MESHWRIGHT_INLINE float total() const {
    float t[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) t[lane] = sum[lane];
    for (int width = kLanes / 2; width > 0; width /= 2)
      for (int lane = 0; lane < width; ++lane) t[lane] += t[lane + width];
    return t[0];
  }
};

/// Largest value(i), or -infinity if count is 0.
template <class Value>
MESHWRIGHT_INLINE float maximum_of(std::int64_t count, const Value& value) {
  float best[kLanes];
  for (float& b : best) b = -__builtin_inff();
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) best[lane] = larger(value(i + lane), best[lane]);
  for (int lane = 0; i + lane < count; ++lane) best[lane] = larger(value(i + lane), best[lane]);
  for (int lane = 1; lane < kLanes; ++lane) best[0] = larger(best[lane], best[0]);
  return best[0];
}

/// e^x: x = n ln 2 + r with |r| <= ln(2) / 2, then the Taylor series of e^r up to r^7 / 7!, whose
/// remainder r^8 / 8! < 6e-9 is 10 % of fp32's rounding error; scaled by 2^n through the exponent
/// bits. Below -87.3 the result is 0 (smallest normal number), above 88.3 infinity. NaN stays NaN.
MESHWRIGHT_INLINE float exponential(float x) {
  constexpr float kLog2E = 1.44269504088896F;
  constexpr float kLn2High = 0.693145751953125F, kLn2Low = 1.42860682030941e-6F;
  constexpr float kRounder = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const float limited = x < -87.3F ? -87.3F : (x > 88.3F ? 88.3F : x);
  const float shifted = limited * kLog2E + kRounder;
  const float n = shifted - kRounder;
  const float r = (limited - n * kLn2High) - n * kLn2Low;
  float p = 1.0F / 5040;
  p = p * r + 1.0F / 720;
  p = p * r + 1.0F / 120;
  p = p * r + 1.0F / 24;
  p = p * r + 1.0F / 6;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const std::int32_t exponent =
      (std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(kRounder) + 127) << 23;
  const float result = p * std::bit_cast<float>(exponent);
  return x < -87.3F ? 0.0F : (x > 88.3F ? __builtin_inff() : result);
}

MESHWRIGHT_INLINE float sigmoid_of(float x) { return 1.0F / (1.0F + exponential(-x)); }

}  // namespace
}  // namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL
