// Lookups. Backward: positions are stably sorted by token ID, then the gradients of each ID are
// summed in that order. So no two threads add to the same element, and sums are deterministic.
#include "kernels/cuda/pack.hpp"

namespace meshwright::cuda {
namespace {

struct Lookup {
  View table, y;
  const std::int32_t* ids;
  std::int64_t rows, first_row, columns, packs_per_row, packs;
  bool accumulate;
};

__global__ void __launch_bounds__(kMapThreads) lookup_kernel(const Lookup a) {
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kMapThreads + threadIdx.x;
  if (index >= a.packs) return;
  const std::int64_t n = index / a.packs_per_row;
  const std::int64_t column = (index - n * a.packs_per_row) * kPack;
  const int count = pack_count(a.columns, column);
  const std::int64_t row = a.ids[n] - a.first_row;
  const bool is_here = row >= 0 && row < a.rows;
  if (!is_here && a.accumulate) return;
  Pack y{};
  if (is_here) y = load_pack(a.table, row, column, count);
  if (a.accumulate) {
    const Pack before = load_pack(a.y, n, column, count);
#pragma unroll
    for (int i = 0; i < kPack; ++i) y.v[i] += before.v[i];
  }
  store_pack(a.y, n, column, count, y);
}

struct SegmentSums {
  View dy, dtable;
  const std::int32_t *ids, *order;  ///< order: positions sorted by token ID
  std::int64_t tokens, rows, first_row, columns;
};

constexpr int kSegmentThreads = 8;  ///< positions that a block reads at a time

/// Block (p, tile): if order[p] is the first position of its token ID, adds all positions of it in
/// 32 packs of columns. Its rows of threads take turns, several positions at once: a token may be a
/// tenth of the text.
__global__ void __launch_bounds__(kWarp* kSegmentThreads)
    segment_sums_kernel(const SegmentSums a) {
  __shared__ float shared[kSegmentThreads][kWarp * kPack];
  const std::int64_t place = blockIdx.x;
  const std::int32_t id = a.ids[a.order[place]];
  const std::int64_t row = id - a.first_row;
  if (row < 0 || row >= a.rows) return;
  if (place > 0 && a.ids[a.order[place - 1]] == id) return;
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const std::int64_t column = (static_cast<std::int64_t>(blockIdx.y) * kWarp + x) * kPack;
  const int count = column < a.columns ? pack_count(a.columns, column) : 0;
  constexpr int kAtOnce = 4;
  Pack sum{};
  bool ends = false;
  for (std::int64_t p = place + y; p < a.tokens && !ends; p += kAtOnce * kSegmentThreads) {
    std::int32_t token[kAtOnce];
#pragma unroll
    for (int n = 0; n < kAtOnce; ++n) {
      token[n] = p + n * kSegmentThreads < a.tokens ? a.order[p + n * kSegmentThreads] : -1;
      if (token[n] >= 0 && a.ids[token[n]] != id) token[n] = -1;
    }
    Pack dy[kAtOnce];
#pragma unroll
    for (int n = 0; n < kAtOnce; ++n)
      dy[n] = token[n] < 0 ? Pack{} : load_pack(a.dy, token[n], column, count);
#pragma unroll
    for (int n = 0; n < kAtOnce; ++n)
#pragma unroll
      for (int i = 0; i < kPack; ++i) sum.v[i] += dy[n].v[i];
    ends = token[kAtOnce - 1] < 0;
  }
#pragma unroll
  for (int i = 0; i < kPack; ++i) shared[y][x * kPack + i] = sum.v[i];
  __syncthreads();
  if (y != 0 || count == 0) return;
  Pack total = load_pack(a.dtable, row, column, count);
#pragma unroll
  for (int other = 0; other < kSegmentThreads; ++other)
#pragma unroll
    for (int i = 0; i < kPack; ++i) total.v[i] += shared[other][x * kPack + i];
  store_pack(a.dtable, row, column, count, total);
}

}  // namespace

void run(const Launch& launch, const EmbeddingForward& a) {
  if (a.y.empty()) return;
  Lookup work{};
  work.table = view_of(a.table), work.y = view_of(ConstMatrix(a.y));
  work.ids = a.ids.data();
  work.rows = a.table.rows, work.first_row = a.first_row, work.columns = a.y.columns;
  work.packs_per_row = ceil_divide(a.y.columns, kPack);
  work.packs = a.y.rows * work.packs_per_row;
  work.accumulate = a.accumulate;
  lookup_kernel<<<grid_of(ceil_divide(work.packs, kMapThreads)), kMapThreads, 0,
                  stream_of(launch)>>>(work);
  check_launch();
}

Bytes scratch(const EmbeddingBackward& a) {
  Pieces pieces;
  pieces.take<std::int32_t>(a.dy.rows);
  return Bytes(pieces.bytes().value + sort_scratch(a.dy.rows, a.dtable.rows).value);
}

void run(const Launch& launch, const EmbeddingBackward& a) {
  if (a.dy.empty() || a.dtable.rows == 0) return;
  Pieces pieces(launch);
  auto* order = pieces.take<std::int32_t>(a.dy.rows);
  SortedItems items{};
  items.keys = a.ids.data();
  items.first_key = a.first_row;
  items.count = a.dy.rows, items.key_count = a.dtable.rows;
  items.order = order;
  sort_items(stream_of(launch), items, pieces);
  SegmentSums work{};
  work.dy = view_of(a.dy), work.dtable = view_of(ConstMatrix(a.dtable));
  work.ids = a.ids.data(), work.order = order;
  work.tokens = a.dy.rows, work.rows = a.dtable.rows;
  work.first_row = a.first_row, work.columns = a.dy.columns;
  const dim3 grid(grid_of(a.dy.rows),
                  static_cast<unsigned>(ceil_divide(a.dy.columns, kWarp * kPack)));
  segment_sums_kernel<<<grid, dim3(kWarp, kSegmentThreads), 0, stream_of(launch)>>>(work);
  check_launch();
}

}  // namespace meshwright::cuda
