#include "kernels/cuda/pack.hpp"

namespace meshwright::cuda {
namespace {

/// out = f(a, b) element by element.
template <class F>
struct PerElement2 {
  F f;
  __device__ void operator()(const Pack (&in)[2], Pack (&out)[1], const Place&) const {
#pragma unroll
    for (int i = 0; i < kPack; ++i) out[0].v[i] = f(in[0].v[i], in[1].v[i]);
  }
};
template <class F>
void map2(const Launch& launch, const ConstMatrix& a, const ConstMatrix& b, const Matrix& y, F f) {
  map<2, 1>(stream_of(launch), {a, b}, {y}, PerElement2<F>{f});
}

struct Plus {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Larger {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct ScaledDifference {
  float factor;
  __device__ float operator()(float a, float b) const { return factor * (a - b); }
};

struct PlusRow {
  View row;
  __device__ void operator()(const Pack (&in)[1], Pack (&out)[1], const Place& at) const {
    const Pack bias = load_pack(row, 0, at.column, at.count);
#pragma unroll
    for (int i = 0; i < kPack; ++i) out[0].v[i] = in[0].v[i] + bias.v[i];
  }
};

struct Scaled {
  float scale;
  __device__ void operator()(const Pack (&in)[1], Pack (&out)[1], const Place&) const {
#pragma unroll
    for (int i = 0; i < kPack; ++i) out[0].v[i] = scale * in[0].v[i];
  }
};

struct Softcap {
  float cap;
  __device__ void operator()(const Pack (&in)[1], Pack (&out)[1], const Place&) const {
#pragma unroll
    for (int i = 0; i < kPack; ++i) out[0].v[i] = cap * tanhf(in[0].v[i] / cap);
  }
};
/// From (y, dy).
struct SoftcapSlope {
  float cap;
  __device__ void operator()(const Pack (&in)[2], Pack (&out)[1], const Place&) const {
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      const float capped = in[0].v[i] / cap;
      out[0].v[i] = in[1].v[i] * (1.0F - capped * capped);
    }
  }
};

__device__ float sigmoid_of(float x) { return 1.0F / (1.0F + expf(-x)); }

struct Gated {
  View gate;
  __device__ void operator()(const Pack (&in)[1], Pack (&out)[1], const Place& at) const {
    const float s = sigmoid_of(load_one(gate, at.row, 0));
#pragma unroll
    for (int i = 0; i < kPack; ++i) out[0].v[i] = s * in[0].v[i];
  }
};

__global__ void fill_kernel(const View y, const std::int64_t size, const float value) {
  const std::int64_t first =
      (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * kPack;
  if (first >= size) return;
  Pack p;
#pragma unroll
  for (int i = 0; i < kPack; ++i) p.v[i] = value;
  store_pack(y, 0, first, pack_count(size, first), p);
}

}  // namespace

void run(const Launch& launch, const Add& a) { map2(launch, a.a, a.b, a.y, Plus{}); }

void run(const Launch& launch, const BiasAdd& a) {
  map<1, 1>(stream_of(launch), {a.x}, {a.y}, PlusRow{view_of(a.bias)}, true);
}

void run(const Launch& launch, const Reduce& a) {
  const ConstMatrix into = row_of(ConstVector(a.into)), from = row_of(a.from);
  if (a.reduction == Reduction::kSum)
    map2(launch, into, from, row_of(a.into), Plus{});
  else
    map2(launch, into, from, row_of(a.into), Larger{});
}

void run(const Launch& launch, const SoftcapForward& a) {
  map<1, 1>(stream_of(launch), {row_of(a.x)}, {row_of(a.y)}, Softcap{a.cap});
}

void run(const Launch& launch, const SoftcapBackward& a) {
  map<2, 1>(stream_of(launch), {row_of(a.y), row_of(a.dy)}, {row_of(a.dx)}, SoftcapSlope{a.cap});
}

void run(const Launch& launch, const Cast& a) {
  map<1, 1>(stream_of(launch), {row_of(a.x)}, {row_of(a.y)}, Scaled{a.scale});
}

void run(const Launch& launch, const Fill& a) {
  if (a.y.empty()) return;
  fill_kernel<<<grid_of(ceil_divide(a.y.size, kPack * kMapThreads)), kMapThreads, 0,
                stream_of(launch)>>>(view_of(ConstVector(a.y)), a.y.size, a.value);
  check_launch();
}

void run(const Launch& launch, const RowGateForward& a) {
  map<1, 1>(stream_of(launch), {a.x}, {a.y}, Gated{view_of(a.gate)}, true);
}

void run(const Launch& launch, const MeanSquaredErrorGradient& a) {
  const float factor = 2 * a.scale / static_cast<float>(a.x.columns);
  map2(launch, a.x, a.target, a.dx, ScaledDifference{factor});
}

namespace {
__global__ void hold_kernel(const volatile std::uint32_t* gate, const std::uint64_t nanoseconds) {
  const std::uint64_t start = nanoseconds_now();
  while (*gate == 0 && nanoseconds_now() - start < nanoseconds) {
  }
}
}  // namespace

void hold(const std::uint32_t* gate, Seconds limit, void* stream) {
  const auto nanoseconds = static_cast<std::uint64_t>(limit.value * 1e9);
  hold_kernel<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(gate, nanoseconds);
  check_launch();
}

bool has_code_for_device() {
  cudaFuncAttributes attributes{};
  const cudaError_t status = cudaFuncGetAttributes(&attributes, hold_kernel);
  cudaGetLastError();  // clears it, or the next launch would report it
  return status != cudaErrorNoKernelImageForDevice && status != cudaErrorInvalidDeviceFunction;
}

// ---- one result per row -------------------------------------------------------------------

namespace {

constexpr int kRowThreads = 256;

/// dx = s dy, dgate = s (1 - s) (dy . x): one block per row. dx may be dy: a pack is read and
/// written by the same thread.
__global__ void __launch_bounds__(kRowThreads)
    row_gate_backward_kernel(const std::int64_t columns, const View x, const View gate,
                             const View dy, const View dx, const View dgate) {
  __shared__ float shared[kRowThreads / kWarp];
  const std::int64_t row = blockIdx.x;
  const float s = sigmoid_of(load_one(gate, row, 0));
  float product = 0;
  for (std::int64_t i = threadIdx.x * kPack; i < columns; i += kRowThreads * kPack) {
    const int count = pack_count(columns, i);
    const Pack u = load_pack(x, row, i, count);
    Pack d = load_pack(dy, row, i, count);
#pragma unroll
    for (int e = 0; e < kPack; ++e) {
      product += d.v[e] * u.v[e];
      d.v[e] *= s;
    }
    store_pack(dx, row, i, count, d);
  }
  product = row_sum(product, shared);
  if (threadIdx.x == 0) store_one(dgate, row, 0, product * s * (1 - s));
}

__global__ void __launch_bounds__(kRowThreads)
    squared_error_kernel(const std::int64_t columns, const View x, const View target, float* loss) {
  __shared__ float shared[kRowThreads / kWarp];
  const std::int64_t row = blockIdx.x;
  float sum = 0;
  for (std::int64_t i = threadIdx.x * kPack; i < columns; i += kRowThreads * kPack) {
    const int count = pack_count(columns, i);
    const Pack u = load_pack(x, row, i, count), t = load_pack(target, row, i, count);
#pragma unroll
    for (int e = 0; e < kPack; ++e) sum += (u.v[e] - t.v[e]) * (u.v[e] - t.v[e]);
  }
  sum = row_sum(sum, shared);
  if (threadIdx.x == 0) loss[row] = sum / static_cast<float>(columns);
}

}  // namespace

void run(const Launch& launch, const RowGateBackward& a) {
  if (a.x.rows == 0) return;
  row_gate_backward_kernel<<<grid_of(a.x.rows), kRowThreads, 0, stream_of(launch)>>>(
      a.x.columns, view_of(a.x), view_of(a.gate), view_of(a.dy), view_of(ConstMatrix(a.dx)),
      view_of(ConstMatrix(a.dgate)));
  check_launch();
}

void run(const Launch& launch, const MeanSquaredErrorForward& a) {
  if (a.x.rows == 0) return;
  squared_error_kernel<<<grid_of(a.x.rows), kRowThreads, 0, stream_of(launch)>>>(
      a.x.columns, view_of(a.x), view_of(a.target), a.loss.data());
  check_launch();
}

// ---- sums over everything -----------------------------------------------------------------

namespace {

constexpr int kTotalBlocks = 64, kTotalThreads = 256;

__global__ void __launch_bounds__(kTotalThreads)
    partial_totals_kernel(const float* x, const std::int64_t size, double* partial) {
  __shared__ double shared[kTotalThreads / kWarp];
  double sum = 0;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kTotalThreads + threadIdx.x;
       i < size; i += std::int64_t{kTotalBlocks} * kTotalThreads)
    sum += x[i];
  sum = row_sum(sum, shared);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}
__global__ void total_kernel(const double* partial, const float scale, float* total) {
  double sum = 0;
  for (int i = 0; i < kTotalBlocks; ++i) sum += partial[i];
  *total = static_cast<float>(sum * static_cast<double>(scale));
}

}  // namespace

Bytes scratch(const Total&) {
  Pieces pieces;
  pieces.take<double>(kTotalBlocks);
  return pieces.bytes();
}

void run(const Launch& launch, const Total& a) {
  auto* partial = Pieces(launch).take<double>(kTotalBlocks);
  partial_totals_kernel<<<kTotalBlocks, kTotalThreads, 0, stream_of(launch)>>>(
      a.x.data(), static_cast<std::int64_t>(a.x.size()), partial);
  check_launch();
  total_kernel<<<1, 1, 0, stream_of(launch)>>>(partial, a.scale, a.total);
  check_launch();
}

// ---- gradients of biases ------------------------------------------------------------------

namespace {

template <bool kPlain>
struct RowsOf {
  View m;
  using Loaded = PackOf<kPlain>;
  __device__ Loaded load(const Place& at) const { return load_as<kPlain>(m, at); }
  __device__ void terms(const Loaded& loaded, Pack (&values)[1]) const {
    values[0] = unpacked(loaded);
  }
};

/// One block per 32 packs of columns of one expert.
__global__ void __launch_bounds__(kWarp* kColumnThreads)
    grouped_sums_kernel(const View dy, const std::int64_t columns, const View dbias,
                        const std::int64_t* offsets) {
  __shared__ float shared[kColumnThreads][kWarp * kPack + 1];
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const std::int64_t tile = static_cast<std::int64_t>(blockIdx.x) * kWarp * kPack;
  const std::int64_t column = tile + x * kPack;
  const int count = column < columns ? pack_count(columns, column) : 0;
  Pack sum;
#pragma unroll
  for (int i = 0; i < kPack; ++i) sum.v[i] = 0;
  if (count > 0)
    for (std::int64_t row = offsets[blockIdx.y] + y; row < offsets[blockIdx.y + 1];
         row += kColumnThreads) {
      const Pack p = load_pack(dy, row, column, count);
#pragma unroll
      for (int i = 0; i < kPack; ++i) sum.v[i] += p.v[i];
    }
#pragma unroll
  for (int i = 0; i < kPack; ++i) shared[y][x * kPack + i] = sum.v[i];
  __syncthreads();
  const int mine = y * kWarp + x;
  if (tile + mine >= columns) return;
  float total = load_one(dbias, blockIdx.y, tile + mine);
#pragma unroll
  for (int other = 0; other < kColumnThreads; ++other) total += shared[other][mine];
  store_one(dbias, blockIdx.y, tile + mine, total);
}

ColumnSums shape_of(const BiasGradient& a) { return {a.dy.rows, a.dy.columns}; }

}  // namespace

Bytes scratch(const BiasGradient& a) {
  Pieces pieces;
  pieces.take<float>(shape_of(a).partial_floats(1));
  return pieces.bytes();
}

void run(const Launch& launch, const BiasGradient& a) {
  const ColumnSums shape = shape_of(a);
  auto* partial = Pieces(launch).take<float>(shape.partial_floats(1));
  const View dy = view_of(a.dy);
  const AddedTo<1> sums{{a.dbias.data()}};
  if (dy.bf16 && has_whole_packs(dy, a.dy.columns))
    add_column_sums<1>(stream_of(launch), shape, partial, sums, RowsOf<true>{dy});
  else
    add_column_sums<1>(stream_of(launch), shape, partial, sums, RowsOf<false>{dy});
}

void run(const Launch& launch, const GroupedBiasGradient& a) {
  if (a.dy.empty()) return;
  const dim3 grid(grid_of(ceil_divide(a.dy.columns, kPack * kWarp)),
                  static_cast<unsigned>(expert_count(a.offsets)));
  grouped_sums_kernel<<<grid, dim3(kWarp, kColumnThreads), 0, stream_of(launch)>>>(
      view_of(a.dy), a.dy.columns, view_of(ConstMatrix(a.dbias)), a.offsets.data());
  check_launch();
}

}  // namespace meshwright::cuda
