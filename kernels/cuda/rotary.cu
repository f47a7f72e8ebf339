#include "kernels/cuda/pack.hpp"

namespace meshwright::cuda {
namespace {

__global__ void table_kernel(const float* frequencies, const std::int64_t pairs,
                             const std::int64_t first_position, const std::int64_t count,
                             const double scale, const QueryTemperature temperature, float* table) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const std::int64_t position = first_position + i / pairs;
  const double angle = static_cast<double>(position) * static_cast<double>(frequencies[i % pairs]);
  const double factor =
      scale * (1 + temperature.growth *
                       log1p(static_cast<double>(intervals_before(temperature, position))));
  double sine, cosine;
  sincos(angle, &sine, &cosine);
  table[2 * i] = static_cast<float>(factor * cosine);
  table[2 * i + 1] = static_cast<float>(factor * sine);
}

struct RotaryWork {
  View x, y;
  std::int64_t rows;
  int heads, head_size, first, rotated;
  bool halves;
  float sign;  ///< -1: inverse rotation
  const float* table;
  const std::int32_t* positions;
};

/// A thread handles up to eight adjacent elements of a head: the pairs that start in them, or their
/// copy if they are not rotated. May run in place, so only the thread that writes an element may
/// read it.
///
/// Units of a head: first the pairs, eight at a time, then the elements before and after them.
struct Units {
  int pairs, before, behind;
  __host__ __device__ int count() const { return pairs + before + behind; }
};
__host__ __device__ inline Units units_of(int head_size, int first, int rotated) {
  const int behind = head_size - first - rotated;
  return {(rotated / 2 + kPack - 1) / kPack, (first + kPack - 1) / kPack,
          (behind + kPack - 1) / kPack};
}

__device__ void rotate_pairs(const RotaryWork& a, std::int64_t row, std::int64_t start, int pair) {
  const int pairs = a.rotated / 2, left = pairs - pair, count = left < kPack ? left : kPack;
  const float* entry = a.table + 2 * (static_cast<std::int64_t>(a.positions[row]) * pairs + pair);
  Pack u, v;
  const std::int64_t column = start + (a.halves ? pair : 2 * pair);
  View x = a.x, y = a.y;
  x.wide = x.wide && column % kPack == 0 && (!a.halves || pairs % kPack == 0);
  y.wide = y.wide && column % kPack == 0 && (!a.halves || pairs % kPack == 0);
  if (a.halves) {
    u = load_pack(x, row, column, count);
    v = load_pack(x, row, column + pairs, count);
  } else {
    const int low = 2 * count < kPack ? 2 * count : kPack;
    const Pack p = load_pack(x, row, column, low);
    const Pack q = load_pack(x, row, column + kPack, 2 * count - low);
#pragma unroll
    for (int i = 0; i < kPack / 2; ++i) {
      u.v[i] = p.v[2 * i], v.v[i] = p.v[2 * i + 1];
      u.v[i + kPack / 2] = q.v[2 * i], v.v[i + kPack / 2] = q.v[2 * i + 1];
    }
  }
#pragma unroll
  for (int i = 0; i < kPack; ++i) {
    if (i >= count) continue;
    const float cosine = entry[2 * i], sine = a.sign * entry[2 * i + 1];
    const float turned = u.v[i] * cosine - v.v[i] * sine;
    v.v[i] = u.v[i] * sine + v.v[i] * cosine;
    u.v[i] = turned;
  }
  if (a.halves) {
    store_pack(y, row, column, count, u);
    store_pack(y, row, column + pairs, count, v);
    return;
  }
  const int low = 2 * count < kPack ? 2 * count : kPack;
  Pack p, q;
#pragma unroll
  for (int i = 0; i < kPack / 2; ++i) {
    p.v[2 * i] = u.v[i], p.v[2 * i + 1] = v.v[i];
    q.v[2 * i] = u.v[i + kPack / 2], q.v[2 * i + 1] = v.v[i + kPack / 2];
  }
  store_pack(y, row, column, low, p);
  store_pack(y, row, column + kPack, 2 * count - low, q);
}

__device__ void copy_elements(const RotaryWork& a, std::int64_t row, std::int64_t column,
                              int count) {
  for (int i = 0; i < count && i < kPack; ++i)
    store_one(a.y, row, column + i, load_one(a.x, row, column + i));
}

__global__ void __launch_bounds__(kMapThreads) rotary_kernel(const RotaryWork a) {
  const Units units = units_of(a.head_size, a.first, a.rotated);
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kMapThreads + threadIdx.x;
  const std::int64_t head_number = index / units.count();
  int unit = static_cast<int>(index % units.count());
  const std::int64_t row = head_number / a.heads;
  if (row >= a.rows) return;
  const std::int64_t start = head_number % a.heads * a.head_size;
  if (unit < units.pairs) return rotate_pairs(a, row, start + a.first, unit * kPack);
  unit -= units.pairs;
  if (unit < units.before)
    return copy_elements(a, row, start + unit * kPack, a.first - unit * kPack);
  unit -= units.before;
  const int done = a.first + a.rotated + unit * kPack;
  copy_elements(a, row, start + done, a.head_size - done);
}

struct CopyWork {
  View x, y;
  std::int64_t total;  ///< elements written
  int heads_x, size_x, from, heads_y, size_y, to, count;
};

__global__ void __launch_bounds__(kMapThreads) copy_heads_kernel(const CopyWork a) {
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kMapThreads + threadIdx.x;
  if (index >= a.total) return;
  const int i = static_cast<int>(index % a.count);
  const std::int64_t head_number = index / a.count, row = head_number / a.heads_y;
  const int head = static_cast<int>(head_number % a.heads_y);
  const bool sums = a.heads_y == 1, shares = a.heads_x == 1;
  const int first = sums || shares ? 0 : head, last = sums ? a.heads_x - 1 : first;
  float value = 0;
  for (int from = first; from <= last; ++from)
    value += load_one(a.x, row, static_cast<std::int64_t>(from) * a.size_x + a.from + i);
  store_one(a.y, row, static_cast<std::int64_t>(head) * a.size_y + a.to + i, value);
}

}  // namespace

void run(const Launch& launch, const RotaryTable& a) {
  const auto pairs = static_cast<std::int64_t>(a.frequencies.size());
  const std::int64_t count = a.positions * pairs;
  if (count == 0) return;
  table_kernel<<<grid_of(ceil_divide(count, kMapThreads)), kMapThreads, 0, stream_of(launch)>>>(
      a.frequencies.data(), pairs, a.first_position, count, a.scale, a.temperature, a.table.data());
  check_launch();
}

void run(const Launch& launch, const Rotary& a) {
  RotaryWork work{};
  work.x = view_of(a.x), work.y = view_of(ConstMatrix(a.y));
  work.rows = a.x.rows;
  work.heads = static_cast<int>(a.heads), work.head_size = static_cast<int>(a.head_size);
  work.first = static_cast<int>(a.first), work.rotated = static_cast<int>(a.rotated);
  work.halves = a.pairs == RotaryPairs::kHalves;
  work.sign = a.inverse ? -1.0F : 1.0F;
  work.table = a.table.data(), work.positions = a.positions.data();
  const std::int64_t threads =
      a.x.rows * a.heads * units_of(work.head_size, work.first, work.rotated).count();
  if (threads == 0) return;
  rotary_kernel<<<grid_of(ceil_divide(threads, kMapThreads)), kMapThreads, 0, stream_of(launch)>>>(
      work);
  check_launch();
}

void run(const Launch& launch, const CopyHeads& a) {
  CopyWork work{};
  work.x = view_of(a.x), work.y = view_of(ConstMatrix(a.y));
  work.total = a.y.rows * a.heads_y * a.count;
  work.heads_x = static_cast<int>(a.heads_x), work.size_x = static_cast<int>(a.size_x);
  work.from = static_cast<int>(a.from);
  work.heads_y = static_cast<int>(a.heads_y), work.size_y = static_cast<int>(a.size_y);
  work.to = static_cast<int>(a.to), work.count = static_cast<int>(a.count);
  if (work.total == 0) return;
  copy_heads_kernel<<<grid_of(ceil_divide(work.total, kMapThreads)), kMapThreads, 0,
                      stream_of(launch)>>>(work);
  check_launch();
}

}  // namespace meshwright::cuda
