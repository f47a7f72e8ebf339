// PTX instructions without a C++ equivalent, as functions. Internal; for .cu files only. Each has a
// C++ emulation in tests/kernels/emulated/instructions.hpp.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace meshwright::cuda {

/// Two floats, rounded to nearest even, `low` in the lower half.
__device__ inline std::uint32_t to_bf16_pair(float low, float high) {
  std::uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
__device__ inline float power_of_2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
/// Makes the compiler compute anew what it has computed from x, instead of keeping it in registers.
__device__ inline void forget(std::uint32_t& x) { asm volatile("" : "+r"(x)); }
__device__ inline std::uint64_t nanoseconds_now() {
  std::uint64_t now = 0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

// ---- asynchronous copies from device memory into shared memory -----------------------------

__device__ inline std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}
/// Both aligned to 16 bytes.
__device__ inline void copy_16_bytes(void* shared, const void* global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(shared)),
               "l"(global)
               : "memory");
}
__device__ inline void end_of_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits until all groups of copies but the last `kPending` of this thread have arrived.
template <int kPending>
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// ---- tensor cores, by a whole warp: lane = 4 g + t -----------------------------------------

/// Four 8 x 8 matrices of 16 bits: lane 8 i + r gives the address of row r of matrix i (16 bytes).
/// r[i] becomes elements 2t, 2t + 1 of row g of matrix i.
__device__ inline void load_matrices(std::uint32_t (&r)[4], const void* row_of_lane) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row_of_lane))
               : "memory");
}
/// Same for their transposes: r[i] becomes element g of rows 2t, 2t + 1.
__device__ inline void load_transposed(std::uint32_t (&r)[4], const void* row_of_lane) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row_of_lane))
               : "memory");
}
/// C += A B: 16 x 8 += 16 x 16 times 16 x 8 of bf16, sums in fp32. Fragments (PTX ISA, "Matrix
/// Fragments for mma.m16n8k16"):
///   A  a0 (g, 2t..)  a1 (g + 8, 2t..)  a2 (g, 2t + 8..)  a3 (g + 8, 2t + 8..)     [row, k]
///   B  b0 (2t.., g)  b1 (2t + 8.., g)                                            [k, column]
///   C  c0 c1 (g, 2t..)  c2 c3 (g + 8, 2t..)                                      [row, column]
__device__ inline void multiply(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace meshwright::cuda
