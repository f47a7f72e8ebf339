// C++ emulation of kernels/cuda/instructions.hpp, written from the PTX ISA's description of each
// instruction, not from how the kernels use them.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/bfloat16.hpp"

namespace meshwright::cuda {

inline std::uint32_t to_bf16_pair(float low, float high) {
  return std::uint32_t{to_bf16(low)} | std::uint32_t{to_bf16(high)} << 16;
}
inline float power_of_2(float x) { return std::exp2(x); }
inline void forget(std::uint32_t&) {}
inline std::uint64_t nanoseconds_now() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                    std::chrono::nanoseconds(1));
}

inline void copy_16_bytes(void* shared, const void* global) {
  emulated::copy_later(shared, global, 16);
}
inline void end_of_copies() { emulated::end_group_of_copies(); }
template <int kPending>
inline void wait_for_copies() {
  emulated::wait_for_copies(kPending);
}

struct LoadedMatrices {
  const std::uint16_t* row;
  std::uint32_t* result;
};
template <bool kTransposed>
void exchange_matrices(emulated::Lanes lanes, unsigned) {
  for (int lane = 0; lane < emulated::kLanes; ++lane)
    for (int i = 0; i < 4; ++i) {
      const int g = lane / 4, t = lane % 4;
      std::uint32_t pair = 0;
      for (int half = 0; half < 2; ++half) {
        const int row = kTransposed ? 2 * t + half : g, column = kTransposed ? g : 2 * t + half;
        const auto* of_row = static_cast<const LoadedMatrices*>(lanes[8 * i + row]);
        pair |= std::uint32_t{of_row->row[column]} << (16 * half);
      }
      static_cast<LoadedMatrices*>(lanes[lane])->result[i] = pair;
    }
}
inline void load(std::uint32_t (&r)[4], const void* row_of_lane,
                 void (*exchange)(emulated::Lanes, unsigned)) {
  MW_CHECK(reinterpret_cast<std::uintptr_t>(row_of_lane) % 16 == 0);
  LoadedMatrices mine{static_cast<const std::uint16_t*>(row_of_lane), r};
  emulated::meet_warp(0xFFFFFFFFU, exchange, &mine);
}
inline void load_matrices(std::uint32_t (&r)[4], const void* row_of_lane) {
  load(r, row_of_lane, exchange_matrices<false>);
}
inline void load_transposed(std::uint32_t (&r)[4], const void* row_of_lane) {
  load(r, row_of_lane, exchange_matrices<true>);
}

inline float half_of(std::uint32_t pair, int half) {
  return from_bf16(static_cast<std::uint16_t>(pair >> (16 * half)));
}
inline void multiply(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                     std::uint32_t b1) {
  struct Fragments {
    float* c;
    const std::uint32_t* a;
    std::uint32_t b[2];
  } mine{c, a, {b0, b1}};
  emulated::meet_warp(
      0xFFFFFFFFU,
      [](emulated::Lanes lanes, unsigned) {
        float left[16][16], right[16][8];
        for (int lane = 0; lane < emulated::kLanes; ++lane) {
          const auto& f = *static_cast<const Fragments*>(lanes[lane]);
          const int g = lane / 4, t = lane % 4;
          for (int half = 0; half < 2; ++half) {
            const int k = 2 * t + half;
            left[g][k] = half_of(f.a[0], half);
            left[g + 8][k] = half_of(f.a[1], half);
            left[g][k + 8] = half_of(f.a[2], half);
            left[g + 8][k + 8] = half_of(f.a[3], half);
            right[k][g] = half_of(f.b[0], half);
            right[k + 8][g] = half_of(f.b[1], half);
          }
        }
        for (int lane = 0; lane < emulated::kLanes; ++lane) {
          const auto& f = *static_cast<const Fragments*>(lanes[lane]);
          const int g = lane / 4, t = lane % 4;
          for (int i = 0; i < 4; ++i) {
            const int row = g + i / 2 * 8, column = 2 * t + i % 2;
            float sum = 0;
            for (int k = 0; k < 16; ++k) sum += left[row][k] * right[k][column];
            f.c[i] += sum;
          }
        }
      },
      &mine);
}

}  // namespace meshwright::cuda
