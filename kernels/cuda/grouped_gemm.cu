// Products of all experts in one launch; the number of rows per expert is read on the device only.
//
// A block computes 128 x 128 elements of a result. bf16 uses the tensor cores: four warps with 64 x
// 64 each and tiles of 64 of the summed dimension, of which the next two are copied into shared
// memory while one is multiplied. Other dtypes use fp32 lanes (an fp32 operand combined with a bf16
// one is rounded to bf16 first, as in gemm.cu), for tests only: experts are trained in bf16.
//
// Whether the summed dimension lies within an operand's rows or across them:
//   forward          y_e  = x_e W_e + b_e     x: rows     W [k, n]: across
//   input gradient   dx_e = dy_e W_e^T        dy: rows    W [n, k]: rows
//   weight gradient  dW_e += x_e^T dy_e       x: across   dy: across; the summed rows are e's
#include "kernels/cuda/grouped_gemm.hpp"

#include "kernels/cuda/attention_tensor.hpp"

namespace meshwright::cuda {
namespace {
using namespace tensor_cores;  // NOLINT: tiles in shared memory and their operands

constexpr int kHeight = 128, kWidth = 128;  ///< of a block's part of the result
constexpr int kStages = 3;

struct Group {
  View a, b, c, bias;
  const std::int64_t* offsets;
  std::int64_t experts;
  std::int64_t height;  ///< of an expert's result, if the expert's rows are summed over
  std::int64_t width, depth;
  std::int64_t b_height;  ///< rows of b of one expert
  bool sums_rows, a_across, b_across, has_bias, adds;
  bool rounds;  ///< rounds operands to bf16, since one of them is bf16
};

/// The work of a block: an expert, and the start of its part of the operands.
struct Part {
  std::int64_t expert, a_row, a_column, b_row, c_row;
  std::int64_t rows;   ///< remaining rows of the result, possibly more than the block's
  std::int64_t depth;  ///< of the sum
};

/// Returns false if there is nothing to do. Blocks of rows are numbered expert by expert.
__device__ inline bool find_part(const Group& g, std::int64_t block_height, Part& p) {
  if (g.sums_rows) {
    p.expert = blockIdx.z;
    p.a_row = p.b_row = g.offsets[p.expert];
    p.depth = g.offsets[p.expert + 1] - p.a_row;
    p.a_column = static_cast<std::int64_t>(blockIdx.x) * block_height;
    p.c_row = p.expert * g.height + p.a_column;
    p.rows = g.height - p.a_column;
    return p.depth > 0;
  }
  std::int64_t turn = blockIdx.x, first = 0;
  for (p.expert = 0; p.expert < g.experts; ++p.expert) {
    const std::int64_t end = g.offsets[p.expert + 1];
    const std::int64_t blocks = (end - first + block_height - 1) / block_height;
    if (turn < blocks) {
      p.a_row = p.c_row = first + turn * block_height;
      p.a_column = 0;
      p.rows = end - p.a_row;
      p.b_row = p.expert * g.b_height;
      p.depth = g.depth;
      return true;
    }
    turn -= blocks;
    first = end;
  }
  return false;
}

/// A operand from rows that are summed over: rows [16 k, 16 k + 16), columns [column, column + 16).
template <int kSize>
__device__ inline void load_a_across(std::uint32_t (&a)[4], Bf16* tile, int column, int k) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int row = 16 * k + lane / 16 * 8 + lane % 8;
  load_transposed(a, place<kSize>(tile, row, column / kPack + lane / 8 % 2));
}

template <bool kAcross>
__device__ inline void load_operand(Bf16* tile, const View& m, std::int64_t row,
                                    std::int64_t column, std::int64_t lines, std::int64_t k,
                                    std::int64_t depth) {
  if constexpr (kAcross)
    load_async<kTile, kHeight>(tile, m, row + k, depth - k, column, at_most(lines, kHeight));
  else
    load_async<kHeight, kTile>(tile, m, row, lines, column + k, at_most(depth - k, kTile));
}

constexpr int kTileElements = kHeight * kTile;
static_assert(kHeight == kWidth);
constexpr int kGroupBytes = kStages * 2 * kTileElements * 2;

template <bool kAAcross, bool kBAcross>
__global__ void __launch_bounds__(kThreads, 2) group_kernel(const __grid_constant__ Group g) {
  extern __shared__ __align__(128) Bf16 shared[];
  Part p;
  if (!find_part(g, kHeight, p)) return;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.y) * kWidth;
  const std::int64_t columns = g.width - column;
  const auto load_step = [&](std::int64_t step) {
    Bf16* stage = shared + step % kStages * 2 * kTileElements;
    const std::int64_t k = step * kTile;
    load_operand<kAAcross>(stage, g.a, p.a_row, p.a_column, p.rows, k, p.depth);
    load_operand<kBAcross>(stage + kTileElements, g.b, kBAcross ? p.b_row : p.b_row + column,
                           kBAcross ? column : 0, columns, k, p.depth);
  };
  const std::int64_t steps = (p.depth + kTile - 1) / kTile;
  for (int step = 0; step + 1 < kStages; ++step) {
    if (step < steps) load_step(step);
    end_of_copies();
  }
  const int row = my_warp() / 2 * 64, mine = my_warp() % 2 * 64;  // of the block
  float sums[4][8][4] = {};
  for (std::int64_t step = 0; step < steps; ++step) {
    wait_for_copies<kStages - 2>();
    __syncthreads();  // the tiles have arrived; all are done with the stage that is filled next
    if (step + kStages - 1 < steps) load_step(step + kStages - 1);
    end_of_copies();
    Bf16* a_tile = shared + step % kStages * 2 * kTileElements;
    Bf16* b_tile = a_tile + kTileElements;
#pragma unroll
    for (int k = 0; k < kTile / 16; ++k) {
      std::uint32_t a[4][4], b[4];
#pragma unroll
      for (int m = 0; m < 4; ++m)
        if constexpr (kAAcross)
          load_a_across<kHeight>(a[m], a_tile, row + 16 * m, k);
        else
          load_a<kTile>(a[m], a_tile, row + 16 * m, k);
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        if constexpr (kBAcross)
          load_b_across<kWidth>(b, b_tile, mine / 16 + n, k);
        else
          load_b<kTile>(b, b_tile, mine / 16 + n, k);
#pragma unroll
        for (int m = 0; m < 4; ++m) {
          multiply(sums[m][2 * n], a[m], b[0], b[1]);
          multiply(sums[m][2 * n + 1], a[m], b[2], b[3]);
        }
      }
    }
  }
  wait_for_copies<0>();
  const int lane = static_cast<int>(threadIdx.x) % kWarp, gap = lane / 4, t = lane % 4;
#pragma unroll
  for (int m = 0; m < 4; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int r = row + 16 * m + gap + 8 * half;
      if (r >= p.rows) continue;
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        const std::int64_t at = column + mine + 8 * n + 2 * t;
        float first = sums[m][n][2 * half], second = sums[m][n][2 * half + 1];
        if (g.has_bias && at < g.width) first += load_one(g.bias, p.expert, at);
        if (g.has_bias && at + 1 < g.width) second += load_one(g.bias, p.expert, at + 1);
        write_pair(g.c, p.c_row + r, at, at_most(g.width - at, 2), first, second, g.adds);
      }
    }
}

// ---- fp32 lanes ---------------------------------------------------------------------------

constexpr int kLaneThreads = 256, kLaneTile = 64, kLaneDepth = 16, kEach = 4;

__device__ inline float operand(const View& m, bool across, std::int64_t row, std::int64_t column,
                                std::int64_t line, std::int64_t k, bool rounds) {
  const float value = across ? load_one(m, row + k, column + line) : load_one(m, row + line, k);
  return rounds ? from_bits(to_bf16_pair(value, 0.0F) << 16) : value;
}

__global__ void __launch_bounds__(kLaneThreads) lanes_kernel(const __grid_constant__ Group g) {
  __shared__ float a[kLaneDepth][kLaneTile + 1], b[kLaneDepth][kLaneTile + 1];
  Part p;
  if (!find_part(g, kLaneTile, p)) return;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.y) * kLaneTile;
  const int thread = static_cast<int>(threadIdx.x);
  const int x = thread % 16, y = thread / 16;  // elements x + 16 i, y + 16 i
  float sums[kEach][kEach] = {};
  for (std::int64_t k = 0; k < p.depth; k += kLaneDepth) {
    for (int i = thread; i < kLaneDepth * kLaneTile; i += kLaneThreads) {
      const int line = i % kLaneTile, deep = i / kLaneTile;
      const bool inside = k + deep < p.depth;
      a[deep][line] = inside && line < p.rows
                          ? operand(g.a, g.a_across, p.a_row, p.a_column, line, k + deep, g.rounds)
                          : 0.0F;
      b[deep][line] = inside && column + line < g.width
                          ? operand(g.b, g.b_across, p.b_row, 0, column + line, k + deep, g.rounds)
                          : 0.0F;
    }
    __syncthreads();
#pragma unroll
    for (int deep = 0; deep < kLaneDepth; ++deep)
#pragma unroll
      for (int i = 0; i < kEach; ++i)
#pragma unroll
        for (int j = 0; j < kEach; ++j) sums[i][j] += a[deep][y + 16 * i] * b[deep][x + 16 * j];
    __syncthreads();
  }
  for (int i = 0; i < kEach; ++i)
    for (int j = 0; j < kEach; ++j) {
      const std::int64_t r = y + 16 * i, at = column + x + 16 * j;
      if (r >= p.rows || at >= g.width) continue;
      float value = sums[i][j];
      if (g.has_bias) value += load_one(g.bias, p.expert, at);
      if (g.adds) value += load_one(g.c, p.c_row + r, at);
      store_one(g.c, p.c_row + r, at, value);
    }
}

// ---- launches -----------------------------------------------------------------------------

/// Grid for `rows` rows: each expert may have one partly filled block.
dim3 grid_for(const Group& g, std::int64_t rows, std::int64_t tile) {
  const std::int64_t blocks = g.sums_rows ? ceil_divide(g.height, tile) : rows / tile + g.experts;
  const std::int64_t across = ceil_divide(g.width, tile);
  MW_CHECK(across < 65536 && g.experts < 65536);
  return {grid_of(blocks), static_cast<unsigned>(across),
          g.sums_rows ? static_cast<unsigned>(g.experts) : 1U};
}

template <bool kAAcross, bool kBAcross>
void launch_tensor(const Group& g, std::int64_t rows, cudaStream_t stream) {
  MESHWRIGHT_CUDA(cudaFuncSetAttribute(group_kernel<kAAcross, kBAcross>,
                                       cudaFuncAttributeMaxDynamicSharedMemorySize, kGroupBytes));
  group_kernel<kAAcross, kBAcross>
      <<<grid_for(g, rows, kHeight), kThreads, kGroupBytes, stream>>>(g);
  check_launch();
}

void launch_group(const Group& g, std::int64_t rows, cudaStream_t stream) {
  if (!g.a.bf16 || !g.b.bf16) {
    lanes_kernel<<<grid_for(g, rows, kLaneTile), kLaneThreads, 0, stream>>>(g);
    return check_launch();
  }
  if (g.a_across)
    launch_tensor<true, true>(g, rows, stream);
  else if (g.b_across)
    launch_tensor<false, true>(g, rows, stream);
  else
    launch_tensor<false, false>(g, rows, stream);
}

}  // namespace

#ifdef MESHWRIGHT_CUTLASS
Bytes scratch(const GroupedGemm& g) { return fits_cutlass(g) ? scratch_of_cutlass(g) : Bytes(); }
Bytes scratch(const GroupedGemmWeight& g) {
  return fits_cutlass(g) ? scratch_of_cutlass(g) : Bytes();
}
#else
Bytes scratch(const GroupedGemm&) { return {}; }
Bytes scratch(const GroupedGemmWeight&) { return {}; }
#endif

void run(const Launch& launch, const GroupedGemm& g) {
  if (g.y.empty() || expert_count(g.offsets) == 0) return;
#ifdef MESHWRIGHT_CUTLASS
  if (fits_cutlass(g)) return run_by_cutlass(launch, g);
#endif
  Group group{};
  group.a = view_of(g.x), group.b = view_of(g.weights), group.c = view_of(ConstMatrix(g.y));
  group.bias = view_of(g.bias), group.has_bias = !g.bias.empty();
  group.offsets = g.offsets.data(), group.experts = expert_count(g.offsets);
  group.width = g.y.columns, group.depth = g.x.columns;
  group.b_across = !g.transpose_weights;
  group.b_height = g.transpose_weights ? g.y.columns : g.x.columns;
  group.rounds = g.x.dtype != g.weights.dtype;
  launch_group(group, g.x.rows, stream_of(launch));
}

void run(const Launch& launch, const GroupedGemmWeight& g) {
  if (g.dweights.empty() || g.x.rows == 0) return;
#ifdef MESHWRIGHT_CUTLASS
  if (fits_cutlass(g)) return run_by_cutlass(launch, g);
#endif
  Group group{};
  group.a = view_of(g.x), group.b = view_of(g.dy), group.c = view_of(ConstMatrix(g.dweights));
  group.offsets = g.offsets.data(), group.experts = expert_count(g.offsets);
  group.height = g.x.columns, group.width = g.dy.columns;
  group.sums_rows = group.a_across = group.b_across = group.adds = true;
  group.rounds = g.x.dtype != g.dy.dtype;
  launch_group(group, g.x.rows, stream_of(launch));
}

}  // namespace meshwright::cuda
