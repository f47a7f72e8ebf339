// Matrix products by packing (gemm_packed.hpp). Blocks: kDepth rows of the right matrix times kWide
// columns stay in the third-level cache, kTall rows of the left matrix in the second.
#include "kernels/activation_cpu.hpp"
#include "kernels/check_arguments.hpp"
#include "kernels/cpu.hpp"
#include "kernels/gemm_packed.hpp"

namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL {
namespace {

constexpr std::int64_t kDepth = 256, kTall = 192, kWide = 1024;
static_assert(kTall % kTileRows == 0 && kWide % kTileColumns == 0);

struct Blocks {
  std::int64_t m, n, k;            ///< the whole product
  std::int64_t tall, wide, depth;  ///< largest block, padded to tiles
};
Blocks blocks_of(const Gemm& g) {
  Blocks b{};
  b.m = g.c.rows;
  b.n = g.c.columns;
  b.k = g.transpose_a ? g.a.rows : g.a.columns;
  b.tall = smaller(kTall, round_up(b.m, kTileRows));
  b.wide = smaller(kWide, round_up(b.n, kTileColumns));
  b.depth = smaller(kDepth, b.k);
  return b;
}

/// Results that are not fp32 are summed in a panel [m, wide] first.
bool needs_panel(const Gemm& g) { return g.c.dtype != Dtype::kFp32; }

std::int64_t scratch_floats(const Gemm& g) {
  const Blocks b = blocks_of(g);
  return (b.tall + b.wide) * b.depth + (needs_panel(g) ? b.m * b.wide : 0);
}
Bytes bytes_of_floats(std::int64_t count) { return Bytes(round_up(count, 16) * 4); }

/// Columns [first, first + columns) of the result, as floats.
struct Panel {
  float* data;
  std::int64_t stride, first, columns;
};

void multiply_panel(const Gemm& g, const Blocks& b, const Panel& panel, float* packed) {
  float* left = packed;
  float* right = packed + b.tall * b.depth;
  const Operand a = operand(g.a, g.transpose_a), w = operand(g.b, g.transpose_b);
  const float beta = needs_panel(g) ? 0.0F : g.beta;
  for (std::int64_t k = 0; k < b.k; k += kDepth) {
    const std::int64_t depth = smaller(kDepth, b.k - k);
    pack_right(moved(w, k, panel.first), depth, panel.columns, right);
    for (std::int64_t i = 0; i < b.m; i += kTall) {
      const std::int64_t rows = smaller(kTall, b.m - i);
      pack_left(moved(a, i, k), rows, depth, left);
      multiply_packed(rows, panel.columns, depth, left, right, panel.data + i * panel.stride,
                      panel.stride, {.alpha = g.alpha, .beta = k == 0 ? beta : 1.0F});
    }
  }
}

/// What follows the product: beta c where c is rounded, bias, activation, rounding.
void finish_row(const Gemm& g, const Panel& panel, std::int64_t row) {
  Chunk before_buffer, bias_buffer, kept_buffer;
  for_each_chunk(panel.columns, [&](std::int64_t first, std::int64_t count) {
    const std::int64_t column = panel.first + first;
    float* x = panel.data + row * panel.stride + first;
    if (needs_panel(g) && g.beta != 0) {
      const float* before = load(g.c, row, column, count, before_buffer);
      const float beta = g.beta;
      for (std::int64_t i = 0; i < count; ++i) x[i] += beta * before[i];
    }
    if (g.bias.size != 0) {
      const float* bias = load(g.bias, column, count, bias_buffer);
      for (std::int64_t i = 0; i < count; ++i) x[i] += bias[i];
    }
    if (g.before_activation.data != nullptr) {
      float* kept = target(g.before_activation, row, column, kept_buffer);
      for (std::int64_t i = 0; i < count; ++i) kept[i] = x[i];
      store(g.before_activation, row, column, count, kept);
    }
    activate(g.activation, count, x);
    if (needs_panel(g)) store(g.c, row, column, count, x);
  });
}

/// k = 0: the product is zero.
void clear_or_scale(const Gemm& g, const Panel& panel, std::int64_t rows) {
  const float beta = needs_panel(g) ? 0.0F : g.beta;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t i = 0; i < panel.columns; ++i) {
      float& x = panel.data[r * panel.stride + i];
      x = beta == 0 ? 0.0F : beta * x;
    }
}

}  // namespace

Bytes scratch(const Gemm& g) { return bytes_of_floats(scratch_floats(g)); }

void run(const Launch& launch, const Gemm& g) {
  check(g);
  const Blocks b = blocks_of(g);
  if (b.m == 0 || b.n == 0) return;
  MW_CHECK(launch.scratch_size.value >= scratch(g).value);
  float* packed = static_cast<float*>(launch.scratch);
  float* sums = packed + (b.tall + b.wide) * b.depth;
  const bool finishes = needs_panel(g) || g.bias.size != 0 ||
                        g.activation != GemmActivation::kNone ||
                        g.before_activation.data != nullptr;
  for (std::int64_t first = 0; first < b.n; first += kWide) {
    Panel panel{sums, b.wide, first, smaller(kWide, b.n - first)};
    if (!needs_panel(g)) {
      panel.data = static_cast<float*>(g.c.data) + first;
      panel.stride = g.c.stride;
    }
    if (b.k == 0)
      clear_or_scale(g, panel, b.m);
    else
      multiply_panel(g, b, panel, packed);
    for (std::int64_t row = 0; finishes && row < b.m; ++row) finish_row(g, panel, row);
  }
}

Bytes scratch(const BatchedGemm& g) { return scratch(g.first); }

void run(const Launch& launch, const BatchedGemm& g) {
  check(g);
  for (std::int64_t i = 0; i < g.count; ++i) run(launch, product_of(g, i));
}

namespace {
template <class Group>
Bytes largest_scratch(const Group& g) {
  Bytes largest(0);
  for (std::int64_t e = 0; e + 1 < static_cast<std::int64_t>(g.offsets.size()); ++e) {
    const Bytes bytes = scratch(product_of(g, e));
    if (bytes.value > largest.value) largest = bytes;
  }
  return largest;
}
template <class Group>
void run_group(const Launch& launch, const Group& g) {
  for (std::int64_t e = 0; e + 1 < static_cast<std::int64_t>(g.offsets.size()); ++e)
    run(launch, product_of(g, e));
}
}  // namespace

Bytes scratch(const GroupedGemm& g) { return largest_scratch(g); }
Bytes scratch(const GroupedGemmWeight& g) { return largest_scratch(g); }

void run(const Launch& launch, const GroupedGemm& g) {
  check(g);
  run_group(launch, g);
}
void run(const Launch& launch, const GroupedGemmWeight& g) {
  check(g);
  run_group(launch, g);
}

}  // namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL
