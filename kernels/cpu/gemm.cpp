// Matrix products. fp32 operands are multiplied in place, others are converted block by block;
// results that have to be rounded are summed in fp32 first.
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/products.hpp"

namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL {
namespace {

/// Edge of a block: three blocks (3 MiB) stay in cache, and converting an element costs little
/// compared to the 2 x 512 flop it is used for.
constexpr std::int64_t kEdge = 512;

constexpr bool is_float(Dtype dtype) { return dtype == Dtype::kFp32; }

struct Sizes {
  std::int64_t m, n, k;
};
Sizes sizes_of(const Gemm& g) {
  return {g.c.rows, g.c.columns, g.transpose_a ? g.a.rows : g.a.columns};
}

/// Working memory: a block of a, of b and of the sums, each only where it is needed.
struct Blocks {
  std::int64_t m, n, k;  ///< largest block
  std::int64_t a, b, c;  ///< floats
};
Blocks blocks_of(const Gemm& g) {
  const Sizes s = sizes_of(g);
  Blocks blocks{s.m, s.n, s.k, 0, 0, 0};
  if (is_float(g.a.dtype) && is_float(g.b.dtype) && is_float(g.c.dtype)) return blocks;
  blocks.m = smaller(s.m, kEdge), blocks.n = smaller(s.n, kEdge), blocks.k = smaller(s.k, kEdge);
  if (!is_float(g.a.dtype)) blocks.a = blocks.m * blocks.k;
  if (!is_float(g.b.dtype)) blocks.b = blocks.k * blocks.n;
  if (!is_float(g.c.dtype)) blocks.c = blocks.m * blocks.n;
  return blocks;
}

/// A block of the result and the location of its sums.
struct Block {
  std::int64_t row, column, rows, columns;
  float* sums;
  std::int64_t stride;
};

/// Epilogue of a product: beta c if c is rounded, bias, rounding.
void finish_row(const Gemm& g, const Block& block, std::int64_t r) {
  Chunk before_buffer, bias_buffer;
  const bool rounds = !is_float(g.c.dtype);
  for_each_chunk(block.columns, [&](std::int64_t first, std::int64_t count) {
    const std::int64_t row = block.row + r, column = block.column + first;
    float* x = block.sums + r * block.stride + first;
    if (rounds && g.beta != 0) {
      const float* before = load(g.c, row, column, count, before_buffer);
      for (std::int64_t i = 0; i < count; ++i) x[i] += g.beta * before[i];
    }
    if (g.bias.size != 0) {
      const float* bias = load(g.bias, column, count, bias_buffer);
      for (std::int64_t i = 0; i < count; ++i) x[i] += bias[i];
    }
    store(g.c, row, column, count, x);
  });
}

void multiply_block(const Gemm& g, const Blocks& blocks, const Block& block, float* scratch) {
  const std::int64_t depth = sizes_of(g).k;
  const bool keeps = is_float(g.c.dtype) && g.beta != 0;
  for (std::int64_t r = 0; keeps && g.beta != 1 && r < block.rows; ++r)
    for (std::int64_t i = 0; i < block.columns; ++i) block.sums[r * block.stride + i] *= g.beta;
  for (std::int64_t k = 0; k == 0 || k < depth; k += blocks.k) {
    const std::int64_t count = smaller(blocks.k, depth - k);
    multiply({.m = block.rows,
              .n = block.columns,
              .k = count,
              .a = factor_of(g.a, g.transpose_a, block.row, k, block.rows, count, scratch),
              .b = factor_of(g.b, g.transpose_b, k, block.column, count, block.columns,
                             scratch + blocks.a),
              .c = block.sums,
              .stride = block.stride,
              .adds = keeps || k > 0});
    if (count == 0) break;
  }
  const bool finishes = !is_float(g.c.dtype) || g.bias.size != 0;
  for (std::int64_t r = 0; finishes && r < block.rows; ++r) finish_row(g, block, r);
}

/// Scratch size if one expert gets all rows, since the offsets may not be read here.
template <class Group>
Bytes largest_scratch(Group g) {
  const std::int64_t all[2] = {0, g.x.rows};
  g.offsets = std::span<const std::int64_t>(all, 2);
  return scratch(product_of(g, 0));
}

}  // namespace

Bytes scratch(const Gemm& g) {
  const Blocks blocks = blocks_of(g);
  return Bytes(4 * (blocks.a + blocks.b + blocks.c));
}

void run(const Launch& launch, const Gemm& g) {
  if (has_gelu(g)) return run_gelu_apart(g, [&](const auto& part) { run(launch, part); });
  const Sizes s = sizes_of(g);
  const Blocks blocks = blocks_of(g);
  MW_CHECK(launch.scratch_size.value >= scratch(g).value);
  float* memory = static_cast<float*>(launch.scratch);
  for (std::int64_t row = 0; row < s.m; row += blocks.m)
    for (std::int64_t column = 0; column < s.n; column += blocks.n) {
      Block block{row,
                  column,
                  smaller(blocks.m, s.m - row),
                  smaller(blocks.n, s.n - column),
                  memory + blocks.a + blocks.b,
                  blocks.n};
      if (is_float(g.c.dtype)) {
        block.sums = static_cast<float*>(g.c.data) + row * g.c.stride + column;
        block.stride = g.c.stride;
      }
      multiply_block(g, blocks, block, memory);
    }
}

Bytes scratch(const GroupedGemm& g) { return largest_scratch(g); }
Bytes scratch(const GroupedGemmWeight& g) { return largest_scratch(g); }

void run(const Launch& launch, const GroupedGemm& g) {
  run_each_product(g, [&](const Gemm& product) { run(launch, product); });
}
void run(const Launch& launch, const GroupedGemmWeight& g) {
  run_each_product(g, [&](const Gemm& product) { run(launch, product); });
}

}  // namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL
