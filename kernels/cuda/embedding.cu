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

// Positions sorted by token ID are cut into chunks of kChunk. A token's part of a chunk is summed
// by one warp per 256 columns, which adds it to the table if it is all of the token. The parts of
// tokens in several chunks, such as the most frequent ones of a text, are stored instead, and then
// summed in order by a second kernel.
constexpr std::int64_t kChunk = 32;

struct SegmentSums {
  View dy, dtable;
  const std::int32_t *ids, *order;  ///< order: positions sorted by token ID
  float* parts;                     ///< [chunk][2][columns]: of the first token, of the last one
  std::int64_t tokens, rows, first_row, columns;

  /// Of the position in sorted order.
  __device__ std::int32_t id(std::int64_t place) const { return ids[order[place]]; }
  __device__ bool begins(std::int64_t place) const {
    return place == 0 || id(place - 1) != id(place);
  }
  /// Whether the token at `place` goes on at `next`.
  __device__ bool goes_on(std::int64_t place, std::int64_t next) const {
    return next < tokens && id(next) == id(place);
  }
  __device__ bool is_here(std::int32_t token) const {
    return token >= first_row && token - first_row < rows;
  }
  __device__ float* part(std::int64_t place, std::int64_t column) const {
    return parts + (place / kChunk * 2 + (place % kChunk == 0 ? 0 : 1)) * columns + column;
  }
};

constexpr int kSegmentWarps = 8;
struct Tile {
  std::int64_t number, column;  ///< of this warp; of this lane's pack
  int count;
};
__device__ Tile my_tile(std::int64_t columns) {
  Tile tile;
  tile.number = static_cast<std::int64_t>(blockIdx.x) * kSegmentWarps + threadIdx.y;
  tile.column = (static_cast<std::int64_t>(blockIdx.y) * kWarp + threadIdx.x) * kPack;
  tile.count = tile.column < columns ? pack_count(columns, tile.column) : 0;
  return tile;
}
__device__ void add(Pack& sum, const Pack& more) {
#pragma unroll
  for (int i = 0; i < kPack; ++i) sum.v[i] += more.v[i];
}

/// One warp per position: that of a token's first position in a chunk sums its part of the chunk.
__global__ void __launch_bounds__(kWarp* kSegmentWarps) chunk_sums_kernel(const SegmentSums a) {
  const Tile tile = my_tile(a.columns);
  const std::int64_t place = tile.number;
  if (place >= a.tokens || tile.count == 0) return;
  const std::int64_t limit = (place / kChunk + 1) * kChunk, all = a.tokens;
  const std::int64_t end = limit < all ? limit : all;
  constexpr int kAtOnce = 4;
  // The loads of the first round do not wait for one another: most tokens need no second one.
  std::int32_t position[kAtOnce];
#pragma unroll
  for (int n = 0; n < kAtOnce; ++n) position[n] = place + n < end ? a.order[place + n] : -1;
  const std::int32_t before = place > 0 ? a.order[place - 1] : -1;
  const std::int32_t behind = limit < all ? a.order[limit] : -1;
  std::int32_t ids[kAtOnce];
#pragma unroll
  for (int n = 0; n < kAtOnce; ++n) ids[n] = position[n] < 0 ? -1 : a.ids[position[n]];
  const std::int32_t id = ids[0];
  const bool begins = before < 0 || a.ids[before] != id;
  const bool goes_on = behind >= 0 && a.ids[behind] == id;
  if (!a.is_here(id) || (!begins && place % kChunk != 0)) return;
  const bool is_whole = begins && !goes_on;
  Pack sum{}, table{};
  if (is_whole) table = load_pack(a.dtable, id - a.first_row, tile.column, tile.count);
  bool ends = false;
  for (std::int64_t p = place;;) {
    Pack dy[kAtOnce];
#pragma unroll
    for (int n = 0; n < kAtOnce; ++n) {
      const bool mine = position[n] >= 0 && ids[n] == id;
      dy[n] = mine ? load_pack(a.dy, position[n], tile.column, tile.count) : Pack{};
      if (n == kAtOnce - 1) ends = !mine;
    }
#pragma unroll
    for (int n = 0; n < kAtOnce; ++n) add(sum, dy[n]);
    p += kAtOnce;
    if (ends || p >= end) break;
#pragma unroll
    for (int n = 0; n < kAtOnce; ++n) position[n] = p + n < end ? a.order[p + n] : -1;
#pragma unroll
    for (int n = 0; n < kAtOnce; ++n) ids[n] = position[n] < 0 ? -1 : a.ids[position[n]];
  }
  if (is_whole) {
    add(sum, table);
    store_pack(a.dtable, id - a.first_row, tile.column, tile.count, sum);
    return;
  }
  float* part = a.part(place, tile.column);
  for (int i = 0; i < tile.count; ++i) part[i] = sum.v[i];
}

/// One warp per chunk: sums the parts of the token that begins in it and goes on behind it.
__global__ void __launch_bounds__(kWarp* kSegmentWarps) add_parts_kernel(const SegmentSums a) {
  const Tile tile = my_tile(a.columns);
  const std::int64_t first = tile.number * kChunk, next = first + kChunk;
  if (next >= a.tokens || tile.count == 0 || !a.goes_on(next - 1, next)) return;
  const std::int32_t id = a.id(next);
  const bool fills_chunk = a.id(first) == id;
  if (!a.is_here(id) || (fills_chunk && !a.begins(first))) return;
  const auto part_at = [&](std::int64_t place) {
    const float* part = a.part(place, tile.column);
    Pack p{};
    for (int i = 0; i < tile.count; ++i) p.v[i] = part[i];
    return p;
  };
  Pack sum = part_at(fills_chunk ? first : first + 1);
  for (std::int64_t chunk = next; a.goes_on(next, chunk); chunk += kChunk) add(sum, part_at(chunk));
  add(sum, load_pack(a.dtable, id - a.first_row, tile.column, tile.count));
  store_pack(a.dtable, id - a.first_row, tile.column, tile.count, sum);
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

namespace {
std::int64_t chunks_of(const EmbeddingBackward& a) { return ceil_divide(a.dy.rows, kChunk); }
}  // namespace

Bytes scratch(const EmbeddingBackward& a) {
  Pieces pieces;
  pieces.take<std::int32_t>(a.dy.rows);
  pieces.take<float>(chunks_of(a) * 2 * a.dy.columns);
  return Bytes(pieces.bytes().value + sort_scratch(a.dy.rows, a.dtable.rows).value);
}

void run(const Launch& launch, const EmbeddingBackward& a) {
  if (a.dy.empty() || a.dtable.rows == 0) return;
  Pieces pieces(launch);
  SegmentSums work{};
  auto* order = pieces.take<std::int32_t>(a.dy.rows);
  work.parts = pieces.take<float>(chunks_of(a) * 2 * a.dy.columns);
  SortedItems items{};
  items.keys = a.ids.data();
  items.first_key = a.first_row;
  items.count = a.dy.rows, items.key_count = a.dtable.rows;
  items.order = order;
  sort_items(stream_of(launch), items, pieces);
  work.dy = view_of(a.dy), work.dtable = view_of(ConstMatrix(a.dtable));
  work.ids = a.ids.data(), work.order = order;
  work.tokens = a.dy.rows, work.rows = a.dtable.rows;
  work.first_row = a.first_row, work.columns = a.dy.columns;
  const dim3 threads(kWarp, kSegmentWarps);
  const auto tiles = static_cast<unsigned>(ceil_divide(a.dy.columns, kWarp * kPack));
  chunk_sums_kernel<<<dim3(grid_of(ceil_divide(a.dy.rows, kSegmentWarps)), tiles), threads, 0,
                      stream_of(launch)>>>(work);
  check_launch();
  add_parts_kernel<<<dim3(grid_of(ceil_divide(chunks_of(a), kSegmentWarps)), tiles), threads, 0,
                     stream_of(launch)>>>(work);
  check_launch();
}

}  // namespace meshwright::cuda
