/// Device code shared by all CUDA kernels: packs of eight elements, reductions over threads, and
/// maps over matrices. Internal; for .cu files only.
///
/// Kernels are written once for all storage types: whether a view is bf16 and whether its rows
/// allow 16-byte accesses is uniform over a launch, so testing it at run time costs nothing
/// compared to the memory accesses. Eight elements are one access in bf16 and two in fp32.
#pragma once

#include "kernels/cuda/instructions.hpp"
#include "kernels/cuda/kernels.hpp"

namespace meshwright::cuda {

constexpr int kPack = 8;
constexpr int kWarp = 32;

/// A matrix as passed to kernels.
struct View {
  void* data;
  std::int64_t stride;  ///< elements
  bool bf16;
  bool wide;  ///< a pack at a multiple of eight columns is aligned to 16 bytes
};

inline View view_of(const ConstMatrix& m) {
  const std::int64_t size = m.dtype == Dtype::kBf16 ? 2 : 4;
  const bool wide = reinterpret_cast<std::uintptr_t>(m.data) % 16 == 0 &&
                    (m.rows <= 1 || m.stride * size % 16 == 0);
  return {const_cast<void*>(m.data), m.stride, m.dtype == Dtype::kBf16, wide};
}
inline ConstMatrix row_of(const ConstVector& v) { return dense_matrix(v.data, 1, v.size, v.dtype); }
inline Matrix row_of(const Vector& v) { return dense_matrix(v.data, 1, v.size, v.dtype); }
inline View view_of(const ConstVector& v) { return view_of(row_of(v)); }

struct Pack {
  float v[kPack];
};

__device__ inline float from_bits(std::uint32_t bf16_in_upper_half) {
  return __uint_as_float(bf16_in_upper_half);
}
__device__ inline std::uint16_t to_bf16_bits(float value) {
  return static_cast<std::uint16_t>(to_bf16_pair(value, 0.0F) & 0xFFFFU);
}

__device__ inline float load_one(const View& m, std::int64_t row, std::int64_t column) {
  const std::int64_t i = row * m.stride + column;
  if (!m.bf16) return static_cast<const float*>(m.data)[i];
  return from_bits(static_cast<std::uint32_t>(static_cast<const std::uint16_t*>(m.data)[i]) << 16);
}
__device__ inline void store_one(const View& m, std::int64_t row, std::int64_t column,
                                 float value) {
  const std::int64_t i = row * m.stride + column;
  if (m.bf16)
    static_cast<std::uint16_t*>(m.data)[i] = to_bf16_bits(value);
  else
    static_cast<float*>(m.data)[i] = value;
}

// ---- packs as stored -------------------------------------------------------------------------
// Threads that need several packs at once must load all of them before they convert the first:
// tests of a view's dtype between the loads would make each load wait for the previous one. So
// kernels with long rows have a second instance for rows of whole, aligned packs of one dtype.

/// A pack as stored, in a row of whole packs aligned to 16 bytes.
template <bool kBf16>
struct StoredPack {
  uint4 bits;
};
template <>
struct StoredPack<false> {
  float4 low, high;
};

template <bool kBf16>
__device__ inline StoredPack<kBf16> load_stored(const View& m, std::int64_t row,
                                                std::int64_t column) {
  const std::int64_t i = row * m.stride + column;
  if constexpr (kBf16) {
    return {*reinterpret_cast<const uint4*>(static_cast<const std::uint16_t*>(m.data) + i)};
  } else {
    const float4* from = reinterpret_cast<const float4*>(static_cast<const float*>(m.data) + i);
    return {from[0], from[1]};
  }
}
__device__ inline Pack unpacked(const StoredPack<true>& stored) {
  const std::uint32_t words[4] = {stored.bits.x, stored.bits.y, stored.bits.z, stored.bits.w};
  Pack p;
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    p.v[2 * w] = from_bits(words[w] << 16);
    p.v[2 * w + 1] = from_bits(words[w] & 0xFFFF0000U);
  }
  return p;
}
__device__ inline Pack unpacked(const StoredPack<false>& stored) {
  return {{stored.low.x, stored.low.y, stored.low.z, stored.low.w, stored.high.x, stored.high.y,
           stored.high.z, stored.high.w}};
}
/// Whether the first `columns` columns of its rows are whole, aligned packs.
inline bool has_whole_packs(const View& m, std::int64_t columns) {
  return m.wide && columns % kPack == 0;
}

/// `count` elements from `column` on, which is a multiple of eight; the rest are zero.
__device__ inline Pack load_pack(const View& m, std::int64_t row, std::int64_t column, int count) {
  Pack p;
  if (m.wide && count >= kPack) {
    p = m.bf16 ? unpacked(load_stored<true>(m, row, column))
               : unpacked(load_stored<false>(m, row, column));
  } else {
#pragma unroll
    for (int i = 0; i < kPack; ++i) p.v[i] = i < count ? load_one(m, row, column + i) : 0.0F;
  }
  return p;
}

/// A pack of bf16 as stored if kPlain, else any pack.
template <bool kPlain>
struct PackType {
  using Type = StoredPack<true>;
};
template <>
struct PackType<false> {
  using Type = Pack;
};
template <bool kPlain>
using PackOf = typename PackType<kPlain>::Type;
__device__ inline const Pack& unpacked(const Pack& p) { return p; }
/// Before packs are unpacked once more: keeps 4 registers per pack instead of 8.
template <int kPacks>
__device__ inline void forget_unpacked(StoredPack<true> (&packs)[kPacks]) {
#pragma unroll
  for (StoredPack<true>& p : packs)
    forget(p.bits.x), forget(p.bits.y), forget(p.bits.z), forget(p.bits.w);
}
template <int kPacks>
__device__ inline void forget_unpacked(Pack (&)[kPacks]) {}

__device__ inline int pack_count(std::int64_t columns, std::int64_t column) {
  const std::int64_t left = columns - column;
  return left < kPack ? static_cast<int>(left) : kPack;
}

/// Position of a pack.
struct Place {
  std::int64_t row, column;
  int count;
};

template <bool kPlain>
__device__ inline PackOf<kPlain> load_as(const View& m, const Place& at) {
  if constexpr (kPlain)
    return load_stored<true>(m, at.row, at.column);
  else
    return load_pack(m, at.row, at.column, at.count);
}

__device__ inline void store_pack(const View& m, std::int64_t row, std::int64_t column, int count,
                                  const Pack& p) {
  if (m.wide && count >= kPack) {
    const std::int64_t i = row * m.stride + column;
    if (m.bf16) {
      uint4 bits;
      bits.x = to_bf16_pair(p.v[0], p.v[1]);
      bits.y = to_bf16_pair(p.v[2], p.v[3]);
      bits.z = to_bf16_pair(p.v[4], p.v[5]);
      bits.w = to_bf16_pair(p.v[6], p.v[7]);
      *reinterpret_cast<uint4*>(static_cast<std::uint16_t*>(m.data) + i) = bits;
    } else {
      float4* to = reinterpret_cast<float4*>(static_cast<float*>(m.data) + i);
      to[0] = make_float4(p.v[0], p.v[1], p.v[2], p.v[3]);
      to[1] = make_float4(p.v[4], p.v[5], p.v[6], p.v[7]);
    }
  } else {
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      if (i < count) store_one(m, row, column + i, p.v[i]);
  }
}

/// Off by about |x| 2^-24 of itself.
__device__ inline float fast_exp(float x) { return power_of_2(1.4426950408889634F * x); }

// ---- reductions over threads: every thread gets the result, in a fixed order of summation -

__device__ inline float warp_sum(float v) {
#pragma unroll
  for (int lane = kWarp / 2; lane > 0; lane /= 2) v += __shfl_xor_sync(0xFFFFFFFFU, v, lane);
  return v;
}
__device__ inline double warp_sum(double v) {
#pragma unroll
  for (int lane = kWarp / 2; lane > 0; lane /= 2) v += __shfl_xor_sync(0xFFFFFFFFU, v, lane);
  return v;
}
/// Two sums at once.
struct SumPair {
  float first, second;
  __device__ SumPair& operator+=(const SumPair& more) {
    first += more.first, second += more.second;
    return *this;
  }
};
__device__ inline SumPair warp_sum(const SumPair& v) {
  return {warp_sum(v.first), warp_sum(v.second)};
}
__device__ inline float warp_max(float v) {
#pragma unroll
  for (int lane = kWarp / 2; lane > 0; lane /= 2)
    v = fmaxf(v, __shfl_xor_sync(0xFFFFFFFFU, v, lane));
  return v;
}

/// Sum over the blockDim.x threads of a row (a multiple of 32), for blockDim.y rows at once. All
/// threads of the block must call it. `shared`: blockDim.x / 32 * blockDim.y values.
template <class T>
__device__ inline T row_sum(T v, T* shared) {
  v = warp_sum(v);
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  if (warps == 1) return v;
  T* mine = shared + threadIdx.y * warps;
  __syncthreads();  // readers of an earlier sum are done
  if (threadIdx.x % kWarp == 0) mine[threadIdx.x / kWarp] = v;
  __syncthreads();
  T sum{};
  for (int w = 0; w < warps; ++w) sum += mine[w];
  return sum;
}

// ---- maps: out = f(in), pack by pack ------------------------------------------------------

template <int kIn, int kOut>
struct Map {
  View in[kIn], out[kOut];
  std::int64_t columns;
  std::uint32_t packs, packs_per_row;
};

constexpr int kMapThreads = 256;

/// kPlain: all inputs are whole, aligned packs of bf16.
template <int kIn, int kOut, class F, bool kPlain>
__global__ void __launch_bounds__(kMapThreads) map_kernel(const Map<kIn, kOut> m, const F f) {
  const std::uint32_t index = blockIdx.x * kMapThreads + threadIdx.x;
  if (index >= m.packs) return;
  const std::uint32_t row = m.packs == m.packs_per_row ? 0 : index / m.packs_per_row;
  Place place;
  place.row = row;
  place.column = static_cast<std::int64_t>(index - row * m.packs_per_row) * kPack;
  place.count = pack_count(m.columns, place.column);
  PackOf<kPlain> stored[kIn];
#pragma unroll
  for (int i = 0; i < kIn; ++i) stored[i] = load_as<kPlain>(m.in[i], place);
  Pack in[kIn], out[kOut];
#pragma unroll
  for (int i = 0; i < kIn; ++i) in[i] = unpacked(stored[i]);
  f(in, out, place);
#pragma unroll
  for (int i = 0; i < kOut; ++i) store_pack(m.out[i], place.row, place.column, place.count, out[i]);
}

/// Applies f to matrices of the same shape. If none has gaps between its rows and `f` does not use
/// its position, they are treated as one long row.
template <int kIn, int kOut, class F>
void map(cudaStream_t stream, const ConstMatrix (&in)[kIn], const Matrix (&out)[kOut], const F& f,
         bool asks_place = false) {
  std::int64_t rows = out[0].rows, columns = out[0].columns;
  if (rows == 0 || columns == 0) return;
  bool dense = !asks_place;
  for (const ConstMatrix& m : in) dense = dense && (m.stride == columns || rows == 1);
  for (const Matrix& m : out) dense = dense && (m.stride == columns || rows == 1);
  Map<kIn, kOut> work{};
  for (int i = 0; i < kIn; ++i) work.in[i] = view_of(in[i]);
  for (int i = 0; i < kOut; ++i) work.out[i] = view_of(ConstMatrix(out[i]));
  if (dense) {  // aligned as one row: the stride between rows no longer matters
    columns *= rows, rows = 1;
    for (View& v : work.in) v.wide = reinterpret_cast<std::uintptr_t>(v.data) % 16 == 0;
    for (View& v : work.out) v.wide = reinterpret_cast<std::uintptr_t>(v.data) % 16 == 0;
  }
  const std::int64_t packs_per_row = ceil_divide(columns, kPack);
  MW_CHECK(rows * packs_per_row < (std::int64_t{1} << 32) - kMapThreads);
  work.columns = columns;
  work.packs_per_row = static_cast<std::uint32_t>(packs_per_row);
  work.packs = static_cast<std::uint32_t>(rows * packs_per_row);
  auto* kernel = map_kernel<kIn, kOut, F, false>;
  if constexpr (kIn > 1) {  // a single load has nothing to wait for
    bool plain = columns % kPack == 0;
    for (const View& v : work.in) plain = plain && v.bf16 && v.wide;
    if (plain) kernel = map_kernel<kIn, kOut, F, true>;
  }
  kernel<<<grid_of(ceil_divide(work.packs, kMapThreads)), kMapThreads, 0, stream>>>(work, f);
  check_launch();
}

// ---- sums over rows, column by column -----------------------------------------------------

/// Rows are summed in chunks, then the chunks in order: the order depends on the shape only.
struct ColumnSums {
  std::int64_t rows, columns;
  std::int64_t chunks() const {
    const std::int64_t tiles = ceil_divide(columns, kPack * kWarp);
    const std::int64_t most = tiles >= 1024 ? 1 : 1024 / tiles;
    const std::int64_t wanted = ceil_divide(rows, 64);
    return wanted < most ? wanted : most;
  }
  std::int64_t partial_floats(int sums) const { return rows == 0 ? 0 : chunks() * sums * columns; }
};

constexpr int kColumnThreads = 8;  ///< rows that a block reads at a time

/// partial[chunk][s][column] = sum over the chunk's rows of f's terms. F::Loaded is what a term is
/// computed from: several are loaded before the first is used.
template <int kSums, class F>
__global__ void __launch_bounds__(kWarp* kColumnThreads)
    column_sums_kernel(const std::int64_t rows, const std::int64_t columns,
                       const std::int64_t rows_per_chunk, float* partial, const F f) {
  __shared__ float shared[kColumnThreads][kWarp * kPack + 1];
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const std::int64_t tile = static_cast<std::int64_t>(blockIdx.x) * kWarp * kPack;
  const std::int64_t column = tile + x * kPack;
  const int count = column < columns ? pack_count(columns, column) : 0;
  const std::int64_t first = blockIdx.y * rows_per_chunk;
  const std::int64_t last = first + rows_per_chunk < rows ? first + rows_per_chunk : rows;
  Pack sums[kSums];
#pragma unroll
  for (int s = 0; s < kSums; ++s)
#pragma unroll
    for (int i = 0; i < kPack; ++i) sums[s].v[i] = 0;
  constexpr int kAtOnce = 4;
  if (count > 0) {
    for (std::int64_t row = first + y; row < last; row += kAtOnce * kColumnThreads) {
      typename F::Loaded loaded[kAtOnce];
#pragma unroll
      for (int r = 0; r < kAtOnce; ++r)
        if (row + r * kColumnThreads < last)
          loaded[r] = f.load(Place{row + r * kColumnThreads, column, count});
#pragma unroll
      for (int r = 0; r < kAtOnce; ++r) {
        if (row + r * kColumnThreads >= last) break;
        Pack values[kSums];
        f.terms(loaded[r], values);
#pragma unroll
        for (int s = 0; s < kSums; ++s)
#pragma unroll
          for (int i = 0; i < kPack; ++i) sums[s].v[i] += values[s].v[i];
      }
    }
  }
#pragma unroll
  for (int s = 0; s < kSums; ++s) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kPack; ++i) shared[y][x * kPack + i] = sums[s].v[i];
    __syncthreads();
    const int mine = y * kWarp + x;  // of 256 columns, one for each thread
    float sum = 0;
#pragma unroll
    for (int other = 0; other < kColumnThreads; ++other) sum += shared[other][mine];
    if (tile + mine < columns) partial[(blockIdx.y * kSums + s) * columns + tile + mine] = sum;
  }
}

template <int kSums>
struct AddedTo {
  float* into[kSums];  ///< null: this sum is not needed
};
constexpr int kPartialThreads = 32;  ///< chunks that a block reads at a time

/// 32 columns per block, whose chunks are dealt out to its rows of threads.
template <int kSums>
__global__ void __launch_bounds__(kWarp* kPartialThreads)
    add_partial_kernel(const std::int64_t chunks, const std::int64_t columns, const float* partial,
                       const AddedTo<kSums> to) {
  __shared__ float shared[kPartialThreads][kWarp];
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kWarp + x;
#pragma unroll
  for (int s = 0; s < kSums; ++s) {
    if (to.into[s] == nullptr) continue;
    float sum = 0;
    if (column < columns) {
#pragma unroll 8
      for (std::int64_t chunk = y; chunk < chunks; chunk += kPartialThreads)
        sum += partial[(chunk * kSums + s) * columns + column];
    }
    __syncthreads();  // readers of the last sum are done
    shared[y][x] = sum;
    __syncthreads();
    if (y != 0 || column >= columns) continue;
    float total = 0;
#pragma unroll
    for (int other = 0; other < kPartialThreads; ++other) total += shared[other][x];
    to.into[s][column] += total;
  }
}

template <int kSums, class F>
void add_column_sums(cudaStream_t stream, const ColumnSums& shape, float* partial,
                     const AddedTo<kSums>& to, const F& f) {
  if (shape.rows == 0 || shape.columns == 0) return;
  const std::int64_t chunks = shape.chunks();
  const dim3 grid(grid_of(ceil_divide(shape.columns, kPack * kWarp)),
                  static_cast<unsigned>(chunks));
  column_sums_kernel<kSums, F><<<grid, dim3(kWarp, kColumnThreads), 0, stream>>>(
      shape.rows, shape.columns, ceil_divide(shape.rows, chunks), partial, f);
  check_launch();
  add_partial_kernel<kSums>
      <<<grid_of(ceil_divide(shape.columns, kWarp)), dim3(kWarp, kPartialThreads), 0, stream>>>(
          chunks, shape.columns, partial, to);
  check_launch();
}

}  // namespace meshwright::cuda
