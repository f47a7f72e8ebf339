// Norms. blockDim.x threads share a row (or one group of it); a block has several rows if they are
// short. Elements are read once and stay in registers, up to kMaxColumns of them. Rows of whole,
// aligned packs of bf16 (kPlain) stay there as stored, which takes half of the registers.
#include "kernels/cuda/pack.hpp"

namespace meshwright::cuda {
namespace {

constexpr int kMaxThreads = 512;
constexpr int kFewPacks = 4, kManyPacks = 8;  ///< per thread, in registers
/// Threads of a block. With few packs they are limited so that several blocks fit on a
/// multiprocessor, to hide the latency of the memory.
constexpr int most_threads(int packs) { return packs == kFewPacks ? kMaxThreads / 2 : kMaxThreads; }
constexpr std::int64_t kMaxColumns = std::int64_t{kMaxThreads} * kManyPacks * kPack;

/// Groups treated as rows `width` columns wide.
struct Groups {
  std::int64_t rows, groups, width;
  struct Start {
    std::int64_t row, column;
  };
  __device__ Start start(std::int64_t number) const {
    if (groups == 1) return {number, 0};
    return {number / groups, number % groups * width};
  }
};

struct Threads {
  unsigned across, rows;
  int packs;
};
Threads threads_for(std::int64_t width) {
  MW_CHECK(width <= kMaxColumns);
  const std::int64_t packs = ceil_divide(width, kPack);
  const int kept =
      packs <= std::int64_t{most_threads(kFewPacks)} * kFewPacks ? kFewPacks : kManyPacks;
  const auto across = static_cast<unsigned>(round_up(ceil_divide(packs, kept), kWarp));
  return {across, across < 128 ? 128 / across : 1, kept};
}
/// Factors of normalized elements; zero beyond the end.
template <bool kPlain>
__device__ Pack weights_at(const View& weight, bool has_weight, float offset, std::int64_t column,
                           int count) {
  Pack w{};
  if (has_weight && count > 0) w = unpacked(load_as<kPlain>(weight, {0, column, count}));
#pragma unroll
  for (int e = 0; e < kPack; ++e)
    if (e < count) w.v[e] = has_weight ? w.v[e] + offset : 1.0F;
  return w;
}
/// Groups start at multiples of `width`: only multiples of eight keep the alignment of the rows.
View group_view(const ConstMatrix& m, std::int64_t groups, std::int64_t width) {
  View view = view_of(m);
  view.wide = view.wide && (groups == 1 || width % kPack == 0);
  return view;
}

/// The part of each row that a thread has, in columns from the start of the row.
struct MyColumns {
  int width, first, step;
};
__device__ MyColumns my_columns(const Groups& groups) {
  return {static_cast<int>(groups.width), static_cast<int>(threadIdx.x) * kPack,
          static_cast<int>(blockDim.x) * kPack};
}
/// Elements of the pack at this column; plain rows have whole packs.
template <bool kPlain>
__device__ int count_at(int width, int column) {
  if constexpr (kPlain) return column < width ? kPack : 0;
  return column < width ? pack_count(width, column) : 0;
}
/// The row alone, so that its columns count from 0.
__device__ View row_at(View m, const Groups::Start& at) {
  const std::int64_t first = at.row * m.stride + at.column;
  m.data = static_cast<std::byte*>(m.data) + first * (m.bf16 ? 2 : 4);
  return m;
}
/// This thread's packs of a row, zero beyond its end.
template <int kPacks, bool kPlain>
__device__ void load_row(const View& row, const MyColumns& mine, PackOf<kPlain> (&packs)[kPacks]) {
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    const int i = mine.first + p * mine.step;
    packs[p] = PackOf<kPlain>{};
    if (i < mine.width) packs[p] = load_as<kPlain>(row, {0, i, count_at<kPlain>(mine.width, i)});
  }
}
/// An absent view counts as plain.
bool is_plain(const View& m, const Groups& groups) {
  return m.data == nullptr || (m.bf16 && has_whole_packs(m, groups.width));
}

struct ForwardWork {
  Groups groups;
  View x, weight, bias, y;
  bool centered, has_bias, has_weight;
  float epsilon, offset;
  float *mean, *inverse_deviation;
};

template <int kPacks, bool kPlain>
__global__ void __launch_bounds__(most_threads(kPacks), (kPlain && kPacks == kFewPacks ? 6 : 1))
    norm_forward_kernel(const ForwardWork a) {
  __shared__ float shared[kMaxThreads / kWarp];
  const std::int64_t number = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  const bool is_real = number < a.groups.rows;  // all threads take part in the sums
  const Groups::Start at = a.groups.start(is_real ? number : 0);
  const MyColumns mine = my_columns(a.groups);
  PackOf<kPlain> stored[kPacks];
  load_row<kPacks, kPlain>(row_at(a.x, at), mine, stored);
  float sum = 0;
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    const Pack x = unpacked(stored[p]);
#pragma unroll
    for (int e = 0; e < kPack; ++e) sum += x.v[e];
  }
  const float inverse_width = 1.0F / static_cast<float>(mine.width);
  const float mean = a.centered ? row_sum(sum, shared) * inverse_width : 0.0F;
  float squares = 0;
  forget_unpacked(stored);
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    const int i = mine.first + p * mine.step;
    const int count = count_at<kPlain>(mine.width, i);
    const Pack x = unpacked(stored[p]);
#pragma unroll
    for (int e = 0; e < kPack; ++e)
      if (e < count) squares += (x.v[e] - mean) * (x.v[e] - mean);
  }
  const float r = 1.0F / sqrtf(row_sum(squares, shared) * inverse_width + a.epsilon);
  if (!is_real) return;
  forget_unpacked(stored);
  const View y_row = a.y.data == nullptr ? a.y : row_at(a.y, at);
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    const int i = mine.first + p * mine.step;
    if (i >= mine.width || a.y.data == nullptr) break;
    const int count = count_at<kPlain>(mine.width, i);
    const Pack weight = weights_at<kPlain>(a.weight, a.has_weight, a.offset, i, count);
    Pack bias{};
    if (a.has_bias) bias = unpacked(load_as<kPlain>(a.bias, {0, i, count}));
    const Pack x = unpacked(stored[p]);
    Pack y;
#pragma unroll
    for (int e = 0; e < kPack; ++e) y.v[e] = (x.v[e] - mean) * r * weight.v[e] + bias.v[e];
    store_pack(y_row, 0, i, count, y);
  }
  if (threadIdx.x != 0) return;
  if (a.mean != nullptr) a.mean[number] = mean;
  if (a.inverse_deviation != nullptr) a.inverse_deviation[number] = r;
}

struct BackwardWork {
  Groups groups;
  View x, dy, weight, dx;
  bool accumulate, has_weight;
  float offset;
  const float *mean, *inverse_deviation;  ///< mean: null for rms norm
};

template <int kPacks, bool kPlain>
__global__ void __launch_bounds__(most_threads(kPacks), (kPlain && kPacks == kFewPacks ? 4 : 1))
    norm_backward_kernel(const BackwardWork a) {
  __shared__ SumPair shared[kMaxThreads / kWarp];
  const std::int64_t number = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  const bool is_real = number < a.groups.rows;
  const Groups::Start at = a.groups.start(is_real ? number : 0);
  const MyColumns mine = my_columns(a.groups);
  const bool centered = a.mean != nullptr;
  const float mean = is_real && centered ? a.mean[number] : 0.0F;
  const float r = is_real ? a.inverse_deviation[number] : 0.0F;
  PackOf<kPlain> x[kPacks], dy[kPacks];
  load_row<kPacks, kPlain>(row_at(a.x, at), mine, x);
  load_row<kPacks, kPlain>(row_at(a.dy, at), mine, dy);
  /// Of pack p: normalized elements, and the gradient times the weight (zero beyond the end).
  struct Terms {
    Pack xhat, g;
  };
  const auto terms_of = [&](int p) {
    const int i = mine.first + p * mine.step;
    const int count = count_at<kPlain>(mine.width, i);
    const Pack weight = weights_at<kPlain>(a.weight, a.has_weight, a.offset, i, count);
    Terms t{unpacked(x[p]), unpacked(dy[p])};
#pragma unroll
    for (int e = 0; e < kPack; ++e) {
      t.xhat.v[e] = (t.xhat.v[e] - mean) * r;
      t.g.v[e] *= weight.v[e];
    }
    return t;
  };
  SumPair sums{0, 0};  // of g and of g xhat
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    const Terms t = terms_of(p);
#pragma unroll
    for (int e = 0; e < kPack; ++e) {
      sums.first += t.g.v[e];
      sums.second += t.g.v[e] * t.xhat.v[e];
    }
  }
  sums = row_sum(sums, shared);
  const float inverse_width = 1.0F / static_cast<float>(mine.width);
  const float mean_g = centered ? sums.first * inverse_width : 0.0F;
  const float mean_g_xhat = sums.second * inverse_width;
  if (!is_real) return;
  forget_unpacked(x);
  forget_unpacked(dy);
  const View dx_row = row_at(a.dx, at);
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    const int i = mine.first + p * mine.step;
    if (i >= mine.width) break;
    const int count = count_at<kPlain>(mine.width, i);
    const Terms t = terms_of(p);
    Pack dx{};
    if (a.accumulate) dx = unpacked(load_as<kPlain>(dx_row, {0, i, count}));
#pragma unroll
    for (int e = 0; e < kPack; ++e) dx.v[e] += r * (t.g.v[e] - mean_g - t.xhat.v[e] * mean_g_xhat);
    store_pack(dx_row, 0, i, count, dx);
  }
}

template <int kPacks, bool kPlain>
constexpr auto kernel_of(const ForwardWork&) {
  return norm_forward_kernel<kPacks, kPlain>;
}
template <int kPacks, bool kPlain>
constexpr auto kernel_of(const BackwardWork&) {
  return norm_backward_kernel<kPacks, kPlain>;
}
template <class Work>
void launch_norm(const Launch& launch, const Threads& t, bool plain, const Work& work) {
  const bool few = t.packs == kFewPacks;
  const auto kernel =
      plain ? (few ? kernel_of<kFewPacks, true>(work) : kernel_of<kManyPacks, true>(work))
            : (few ? kernel_of<kFewPacks, false>(work) : kernel_of<kManyPacks, false>(work));
  kernel<<<grid_of(ceil_divide(work.groups.rows, t.rows)), dim3(t.across, t.rows), 0,
           stream_of(launch)>>>(work);
  check_launch();
}

/// xhat dy and dy of an element, for the sums over rows.
template <bool kPlain>
struct WeightTerms {
  View x, dy;
  Groups groups;
  const float *mean, *inverse_deviation;
  struct Loaded {
    PackOf<kPlain> x, dy;
    float center, r;
  };
  __device__ Loaded load(const Place& place) const {
    const Groups::Start at = groups.start(place.row);
    const Place there{at.row, at.column + place.column, place.count};
    return {load_as<kPlain>(x, there), load_as<kPlain>(dy, there),
            mean == nullptr ? 0.0F : mean[place.row], inverse_deviation[place.row]};
  }
  __device__ void terms(const Loaded& loaded, Pack (&values)[2]) const {
    const Pack u = unpacked(loaded.x);
    values[1] = unpacked(loaded.dy);
#pragma unroll
    for (int e = 0; e < kPack; ++e)
      values[0].v[e] = values[1].v[e] * ((u.v[e] - loaded.center) * loaded.r);
  }
};

Groups groups_of(const ConstMatrix& x, std::int64_t groups) {
  const std::int64_t width = x.columns / groups;
  return {x.rows * groups, groups, width};
}

}  // namespace

void run(const Launch& launch, const NormForward& a) {
  if (a.x.empty()) return;
  const Groups groups = groups_of(a.x, a.groups);
  ForwardWork work{};
  work.groups = groups;
  work.x = group_view(a.x, a.groups, groups.width);
  work.y = group_view(a.y, a.groups, groups.width);
  work.weight = view_of(a.weight);
  work.has_weight = !a.weight.empty();
  work.offset = a.offset;
  work.bias = view_of(a.bias);
  work.centered = a.kind == NormKind::kLayerNorm;
  work.has_bias = !a.bias.empty();
  work.epsilon = a.epsilon;
  work.mean = work.centered && !a.mean.empty() ? a.mean.data() : nullptr;
  work.inverse_deviation = a.inverse_deviation.empty() ? nullptr : a.inverse_deviation.data();
  const Threads t = threads_for(groups.width);
  const bool plain =
      is_plain(work.x, groups) && is_plain(work.weight, groups) && is_plain(work.bias, groups);
  launch_norm(launch, t, plain, work);
}

void run(const Launch& launch, const NormBackwardInput& a) {
  if (a.x.empty()) return;
  const Groups groups = groups_of(a.x, a.groups);
  BackwardWork work{};
  work.groups = groups;
  work.x = group_view(a.x, a.groups, groups.width);
  work.dy = group_view(a.dy, a.groups, groups.width);
  work.dx = group_view(a.dx, a.groups, groups.width);
  work.weight = view_of(a.weight);
  work.has_weight = !a.weight.empty();
  work.offset = a.offset;
  work.accumulate = a.accumulate;
  work.mean = a.kind == NormKind::kLayerNorm ? a.mean.data() : nullptr;
  work.inverse_deviation = a.inverse_deviation.data();
  const Threads t = threads_for(groups.width);
  const bool plain = is_plain(work.x, groups) && is_plain(work.dy, groups) &&
                     is_plain(work.weight, groups) && is_plain(work.dx, groups);
  launch_norm(launch, t, plain, work);
}

Bytes scratch(const NormBackwardWeight& a) {
  Pieces pieces;
  pieces.take<float>(ColumnSums{a.x.rows * a.groups, a.x.columns / a.groups}.partial_floats(2));
  return pieces.bytes();
}

void run(const Launch& launch, const NormBackwardWeight& a) {
  if (a.x.empty()) return;
  const Groups groups = groups_of(a.x, a.groups);
  const ColumnSums shape{groups.rows, groups.width};
  auto* partial = Pieces(launch).take<float>(shape.partial_floats(2));
  const View x = group_view(a.x, a.groups, groups.width);
  const View dy = group_view(a.dy, a.groups, groups.width);
  const float* mean = a.kind == NormKind::kLayerNorm ? a.mean.data() : nullptr;
  const float* r = a.inverse_deviation.data();
  const AddedTo<2> sums{{a.dweight.data(), a.dbias.empty() ? nullptr : a.dbias.data()}};
  if (is_plain(x, groups) && is_plain(dy, groups))
    add_column_sums<2>(stream_of(launch), shape, partial, sums,
                       WeightTerms<true>{x, dy, groups, mean, r});
  else
    add_column_sums<2>(stream_of(launch), shape, partial, sums,
                       WeightTerms<false>{x, dy, groups, mean, r});
}

}  // namespace meshwright::cuda
