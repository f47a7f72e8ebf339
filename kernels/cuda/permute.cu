// Rows to experts and back, and the stable radix sort behind it, eight bits of the key at a time:
// count each digit in each chunk of items, turn counts into destinations, move the items. Integer
// counts make the order deterministic.
#include "kernels/cuda/pack.hpp"

namespace meshwright::cuda {
namespace {

constexpr int kDigits = 256, kChunk = 256;  ///< items of a chunk: one per thread
constexpr int kWarps = kChunk / kWarp;
constexpr int kMaxPasses = 4;

struct SortPass {
  const std::int32_t* keys;  ///< by item
  std::int64_t first_key, key_count;
  const std::int32_t* order;  ///< items in the order of the previous pass; null: by index
  std::int64_t count, chunks;
  int shift;
  std::int32_t* counts;  ///< [chunk][digit]; later the destination of its items
  std::int32_t* into;

  __device__ std::int32_t item(std::int64_t place) const {
    return order == nullptr ? static_cast<std::int32_t>(place) : order[place];
  }
  /// Keys outside [0, key_count) come last, together.
  __device__ unsigned digit(std::int32_t item) const {
    const std::int64_t key = static_cast<std::int64_t>(keys[item]) - first_key;
    const auto kept = static_cast<std::uint64_t>(key >= 0 && key < key_count ? key : key_count);
    return static_cast<unsigned>(kept >> shift) & (kDigits - 1);
  }
};

__global__ void __launch_bounds__(kChunk) count_digits_kernel(const SortPass a) {
  __shared__ int counts[kDigits];
  counts[threadIdx.x] = 0;
  __syncthreads();
  const std::int64_t place = static_cast<std::int64_t>(blockIdx.x) * kChunk + threadIdx.x;
  if (place < a.count) atomicAdd(&counts[a.digit(a.item(place))], 1);
  __syncthreads();
  a.counts[static_cast<std::int64_t>(blockIdx.x) * kDigits + threadIdx.x] = counts[threadIdx.x];
}

constexpr int kSlices = 4;
/// One block: turns counts into destinations. Each thread has a digit and a slice of the chunks.
__global__ void __launch_bounds__(kDigits* kSlices) place_digits_kernel(const SortPass a) {
  __shared__ int totals[kSlices][kDigits], ends[kDigits];
  const int digit = static_cast<int>(threadIdx.x), slice = static_cast<int>(threadIdx.y);
  const std::int64_t size = (a.chunks + kSlices - 1) / kSlices, begin = slice * size;
  const std::int64_t end = begin + size < a.chunks ? begin + size : a.chunks;
  int sum = 0;
#pragma unroll 8
  for (std::int64_t chunk = begin; chunk < end; ++chunk) sum += a.counts[chunk * kDigits + digit];
  totals[slice][digit] = sum;
  __syncthreads();
  int of_digit = 0, first = 0;
  for (int s = 0; s < kSlices; ++s) {
    of_digit += totals[s][digit];
    if (s < slice) first += totals[s][digit];
  }
  if (slice == 0) ends[digit] = of_digit;
  __syncthreads();
  for (int step = 1; step < kDigits; step *= 2) {
    const int more = digit >= step ? ends[digit - step] : 0;
    __syncthreads();
    if (slice == 0) ends[digit] += more;
    __syncthreads();
  }
  first += ends[digit] - of_digit;
#pragma unroll 8
  for (std::int64_t chunk = begin; chunk < end; ++chunk) {
    const int count = a.counts[chunk * kDigits + digit];
    a.counts[chunk * kDigits + digit] = first;
    first += count;
  }
}

/// An item goes after the items of its digit in earlier warps and earlier lanes.
__global__ void __launch_bounds__(kChunk) move_items_kernel(const SortPass a) {
  __shared__ int counts[kWarps][kDigits];
  const int warp = static_cast<int>(threadIdx.x) / kWarp,
            lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int w = 0; w < kWarps; ++w) counts[w][threadIdx.x] = 0;  // kChunk == kDigits
  __syncthreads();
  const std::int64_t place = static_cast<std::int64_t>(blockIdx.x) * kChunk + threadIdx.x;
  const bool is_real = place < a.count;
  const std::int32_t item = is_real ? a.item(place) : 0;
  const unsigned digit = is_real ? a.digit(item) : kDigits;  // no real item's digit
  const unsigned peers = __match_any_sync(0xFFFFFFFFU, digit);
  const int before = __popc(peers & ((1U << lane) - 1U));
  if (is_real && before == 0) counts[warp][digit] = __popc(peers);
  __syncthreads();
  if (!is_real) return;
  int rank = before;
  for (int w = 0; w < warp; ++w) rank += counts[w][digit];
  a.into[a.counts[static_cast<std::int64_t>(blockIdx.x) * kDigits + digit] + rank] = item;
}
static_assert(kChunk == kDigits);

int passes_for(std::int64_t key_count) {
  int passes = 1;  // items out of range have the key key_count
  while (passes < kMaxPasses && (key_count >> (8 * passes)) > 0) ++passes;
  return passes;
}

}  // namespace

Bytes sort_scratch(std::int64_t count, std::int64_t key_count) {
  Pieces pieces;
  pieces.take<std::int32_t>(ceil_divide(count, kChunk) * kDigits);
  if (passes_for(key_count) > 1) pieces.take<std::int32_t>(count);
  return pieces.bytes();
}

void sort_items(cudaStream_t stream, const SortedItems& items, Pieces& scratch) {
  if (items.count == 0) return;
  MW_CHECK(items.count < (std::int64_t{1} << 31) && items.key_count < (std::int64_t{1} << 31));
  const int passes = passes_for(items.key_count);
  SortPass pass{};
  pass.keys = items.keys, pass.first_key = items.first_key, pass.key_count = items.key_count;
  pass.count = items.count, pass.chunks = ceil_divide(items.count, kChunk);
  pass.counts = scratch.take<std::int32_t>(pass.chunks * kDigits);
  std::int32_t* other = passes > 1 ? scratch.take<std::int32_t>(items.count) : nullptr;
  for (int p = 0; p < passes; ++p) {  // the last pass writes into items.order
    pass.shift = 8 * p;
    pass.into = (passes - 1 - p) % 2 == 0 ? items.order : other;
    count_digits_kernel<<<grid_of(pass.chunks), kChunk, 0, stream>>>(pass);
    check_launch();
    place_digits_kernel<<<1, dim3(kDigits, kSlices), 0, stream>>>(pass);
    check_launch();
    move_items_kernel<<<grid_of(pass.chunks), kChunk, 0, stream>>>(pass);
    check_launch();
    pass.order = pass.into;
  }
}

namespace {

__global__ void invert_kernel(const std::int32_t* slot_of_row, const std::int64_t count,
                              std::int32_t* row_of_slot) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row < count) row_of_slot[slot_of_row[row]] = static_cast<std::int32_t>(row);
}

/// counts[e] from the sorted order: the difference of two binary searches.
__global__ void count_experts_kernel(const std::int32_t* experts, const std::int32_t* slot_of_row,
                                     const std::int64_t count, const std::int64_t expert_count,
                                     std::int32_t* counts) {
  const std::int64_t e = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (e >= expert_count) return;
  const auto rows_below = [&](std::int64_t expert) {
    std::int64_t low = 0, high = count;
    while (low < high) {
      const std::int64_t middle = (low + high) / 2;
      if (experts[slot_of_row[middle]] < expert)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  };
  counts[e] = static_cast<std::int32_t>(rows_below(e + 1) - rows_below(e));
}

}  // namespace

Bytes scratch(const SortByExpert& a) {
  return sort_scratch(static_cast<std::int64_t>(a.experts.size()),
                      static_cast<std::int64_t>(a.counts.size()));
}

void run(const Launch& launch, const SortByExpert& a) {
  const auto slots = static_cast<std::int64_t>(a.experts.size());
  const auto experts = static_cast<std::int64_t>(a.counts.size());
  Pieces pieces(launch);
  SortedItems items{};
  items.keys = a.experts.data();
  items.count = slots, items.key_count = experts;
  items.order = a.slot_of_row.data();
  sort_items(stream_of(launch), items, pieces);
  if (slots > 0) {
    invert_kernel<<<grid_of(ceil_divide(slots, kMapThreads)), kMapThreads, 0, stream_of(launch)>>>(
        a.slot_of_row.data(), slots, a.row_of_slot.data());
    check_launch();
  }
  if (experts == 0) return;
  count_experts_kernel<<<grid_of(ceil_divide(experts, kMapThreads)), kMapThreads, 0,
                         stream_of(launch)>>>(a.experts.data(), a.slot_of_row.data(), slots,
                                              experts, a.counts.data());
  check_launch();
}

// ---- rows ---------------------------------------------------------------------------------

namespace {

struct RowsWork {
  View x, y;
  const std::int32_t* index;
  const float* weights;  ///< null: 1
  std::int64_t copies, columns, packs_per_row, packs;
};
RowsWork rows_work(const ConstMatrix& x, const Matrix& y, std::span<const std::int32_t> index,
                   std::span<const float> weights, std::int64_t copies) {
  RowsWork work{};
  work.x = view_of(x), work.y = view_of(ConstMatrix(y));
  work.index = index.data();
  work.weights = weights.empty() ? nullptr : weights.data();
  work.copies = copies, work.columns = y.columns;
  work.packs_per_row = ceil_divide(y.columns, kPack);
  work.packs = y.rows * work.packs_per_row;
  return work;
}

__global__ void __launch_bounds__(kMapThreads) gather_kernel(const RowsWork a) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kMapThreads + threadIdx.x;
  if (i >= a.packs) return;
  const std::int64_t row = i / a.packs_per_row, column = (i - row * a.packs_per_row) * kPack;
  const int count = pack_count(a.columns, column);
  const std::int32_t slot = a.index[row];
  Pack p{};
  if (slot < 0) return store_pack(a.y, row, column, count, p);
  const float scale = a.weights == nullptr ? 1.0F : a.weights[slot];
  p = load_pack(a.x, slot / a.copies, column, count);
#pragma unroll
  for (int e = 0; e < kPack; ++e) p.v[e] *= scale;
  store_pack(a.y, row, column, count, p);
}

__global__ void __launch_bounds__(kMapThreads) combine_kernel(const RowsWork a) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kMapThreads + threadIdx.x;
  if (i >= a.packs) return;
  const std::int64_t row = i / a.packs_per_row, column = (i - row * a.packs_per_row) * kPack;
  const int count = pack_count(a.columns, column);
  Pack sum{};
#pragma unroll 2
  for (std::int64_t slot = row * a.copies; slot < (row + 1) * a.copies; ++slot) {
    const std::int32_t from = a.index[slot];
    if (from < 0) continue;
    const float weight = a.weights == nullptr ? 1.0F : a.weights[slot];
    const Pack p = load_pack(a.x, from, column, count);
#pragma unroll
    for (int e = 0; e < kPack; ++e) sum.v[e] += weight * p.v[e];
  }
  store_pack(a.y, row, column, count, sum);
}

/// One warp per slot.
__global__ void __launch_bounds__(kMapThreads)
    combine_weight_kernel(const View dy, const View x, const std::int32_t* index,
                          const std::int64_t slots, const std::int64_t copies,
                          const std::int64_t columns, float* dweights) {
  const std::int64_t slot =
      static_cast<std::int64_t>(blockIdx.x) * (kMapThreads / kWarp) + threadIdx.x / kWarp;
  if (slot >= slots) return;
  const std::int32_t row = index[slot];
  float product = 0;
  if (row >= 0)
    for (std::int64_t i = threadIdx.x % kWarp * kPack; i < columns; i += kWarp * kPack) {
      const int count = pack_count(columns, i);
      const Pack d = load_pack(dy, slot / copies, i, count), p = load_pack(x, row, i, count);
#pragma unroll
      for (int e = 0; e < kPack; ++e) product += d.v[e] * p.v[e];
    }
  product = warp_sum(product);
  if (threadIdx.x % kWarp == 0) dweights[slot] = product;
}

}  // namespace

void run(const Launch& launch, const GatherRows& a) {
  if (a.y.empty()) return;
  const RowsWork work = rows_work(a.x, a.y, a.index, a.scales, a.copies);
  gather_kernel<<<grid_of(ceil_divide(work.packs, kMapThreads)), kMapThreads, 0,
                  stream_of(launch)>>>(work);
  check_launch();
}

void run(const Launch& launch, const CombineRows& a) {
  if (a.y.empty()) return;
  const RowsWork work = rows_work(a.x, a.y, a.index, a.weights, a.copies);
  combine_kernel<<<grid_of(ceil_divide(work.packs, kMapThreads)), kMapThreads, 0,
                   stream_of(launch)>>>(work);
  check_launch();
}

void run(const Launch& launch, const CombineWeightGradient& a) {
  const auto slots = static_cast<std::int64_t>(a.index.size());
  if (slots == 0) return;
  combine_weight_kernel<<<grid_of(ceil_divide(slots, kMapThreads / kWarp)), kMapThreads, 0,
                          stream_of(launch)>>>(view_of(a.dy), view_of(a.x), a.index.data(), slots,
                                               a.copies, a.dy.columns, a.dweights.data());
  check_launch();
}

}  // namespace meshwright::cuda
