// Matrix products by cuBLASLt, with fused bias and GELU. bf16 operands use the tensor cores, fp32
// operands full fp32 (no tf32). If one operand is bf16 and the other fp32, the latter is rounded to
// bf16 first. Combinations that cuBLASLt cannot write (fp32 operands to bf16, an fp32 bias on bf16)
// are computed in fp32 panels of rows and finished by our own kernel.
#include "kernels/cuda/cublas.hpp"
#include "kernels/cuda/pack.hpp"

namespace meshwright::cuda {
namespace {

constexpr std::int64_t kPanelBytes = std::int64_t{32} << 20;

bool is_mixed(const Gemm& g) { return g.a.dtype != g.b.dtype; }
/// The dtype in which both operands are multiplied.
Dtype operand_dtype(const Gemm& g) {
  return g.a.dtype == Dtype::kFp32 && g.b.dtype == Dtype::kFp32 ? Dtype::kFp32 : Dtype::kBf16;
}
/// Otherwise cuBLASLt rounds to bf16 before it adds the bias.
bool has_exact_epilogue(const Gemm& g) {
  return g.beta == 0 && has_aligned_rows(g.a) && has_aligned_rows(g.b) &&
         has_aligned_rows(result_of(g));
}
bool needs_panels(const Gemm& g) {
  if (g.c.dtype == Dtype::kFp32) return false;
  return operand_dtype(g) == Dtype::kFp32 ||
         (!g.bias.empty() && (g.bias.dtype == Dtype::kFp32 || !has_exact_epilogue(g)));
}
std::int64_t depth_of(const Gemm& g) { return g.transpose_a ? g.a.rows : g.a.columns; }
std::int64_t panel_rows(const Gemm& g) {
  const std::int64_t most = kPanelBytes / (4 * g.c.columns);
  return most >= g.c.rows ? g.c.rows : (most > 0 ? most : 1);
}

struct Memory {
  std::byte* workspace;
  std::uint16_t* rounded;  ///< the fp32 operand as bf16
  float* panel;
};
Memory memory_for(const Gemm& g, Pieces& pieces) {
  Memory memory{};
  if (g.c.empty() || depth_of(g) == 0) return memory;
  memory.workspace = pieces.take<std::byte>(kWorkspace);
  const ConstMatrix& wide = g.a.dtype == Dtype::kFp32 ? g.a : g.b;
  if (is_mixed(g)) memory.rounded = pieces.take<std::uint16_t>(wide.rows * wide.columns);
  if (needs_panels(g)) memory.panel = pieces.take<float>(panel_rows(g) * g.c.columns);
  return memory;
}

struct Rounded {
  __device__ void operator()(const Pack (&in)[1], Pack (&out)[1], const Place&) const {
    out[0] = in[0];
  }
};
ConstMatrix rounded(cudaStream_t stream, const ConstMatrix& m, std::uint16_t* into) {
  const Matrix bf16 = dense_matrix(into, m.rows, m.columns, Dtype::kBf16);
  map<1, 1>(stream, {m}, {bf16}, Rounded{});
  return bf16;
}

/// c = product + beta c + bias, rounded once.
struct Finish {
  View c, bias;
  float beta;
  bool has_bias;
  __device__ void add(Pack& sum, const Place& at) const {
    if (beta != 0) {
      const Pack before = load_pack(c, at.row, at.column, at.count);
#pragma unroll
      for (int i = 0; i < kPack; ++i) sum.v[i] += beta * before.v[i];
    }
    if (!has_bias) return;
    const Pack b = load_pack(bias, 0, at.column, at.count);
#pragma unroll
    for (int i = 0; i < kPack; ++i) sum.v[i] += b.v[i];
  }
  __device__ void operator()(const Pack (&in)[1], Pack (&out)[1], const Place& at) const {
    out[0] = in[0];
    add(out[0], at);
  }
};
/// The same where the product is zero.
struct FinishNothing {
  Finish finish;
  __device__ void operator()(const Pack (&)[1], Pack (&out)[1], const Place& at) const {
    out[0] = Pack{};
    finish.add(out[0], at);
  }
};
Finish finish_of(const Matrix& c, const Gemm& g) {
  return {view_of(ConstMatrix(c)), view_of(g.bias), g.beta, !g.bias.empty()};
}

void multiply_in_panels(cudaStream_t stream, const Gemm& g, const Memory& memory) {
  const std::int64_t height = panel_rows(g);
  for (std::int64_t first = 0; first < g.c.rows; first += height) {
    const std::int64_t rows = g.c.rows - first < height ? g.c.rows - first : height;
    const Matrix panel = dense_matrix(memory.panel, rows, g.c.columns, Dtype::kFp32);
    Gemm part = g;
    part.a = g.transpose_a ? columns_of(g.a, first, rows) : rows_of(g.a, first, rows);
    part.c = panel;
    part.beta = 0;
    part.bias = {};
    multiply_by_cublas_or_throw(stream, part, memory.workspace);
    const Matrix c = rows_of(g.c, first, rows);
    map<1, 1>(stream, {ConstMatrix(panel)}, {c}, finish_of(c, g), true);
  }
}

/// cuBLASLt's GELU reads the auxiliary rows 16 bytes at once. In
/// fp32 its GELU is an approximation, off by up to 2^-18.
bool may_fuse_gelu(const Gemm& g) {
  const ConstMatrix auxiliary = auxiliary_of(g);
  for (const Dtype dtype : {g.c.dtype, g.a.dtype, g.b.dtype, result_of(g).dtype, auxiliary.dtype})
    if (dtype != Dtype::kBf16) return false;
  return has_gelu(g) && depth_of(g) > 0 && (g.bias.empty() || g.bias.dtype == Dtype::kBf16) &&
         has_exact_epilogue(g) && has_aligned_rows(auxiliary);
}

}  // namespace

Bytes scratch(const Gemm& g) {
  Pieces pieces;
  memory_for(g, pieces);
  return pieces.bytes();
}

void run(const Launch& launch, const Gemm& original) {
  Gemm g = original;
  if (g.c.empty()) return;
  if (has_gelu(g)) {
    Pieces pieces(launch);
    if (may_fuse_gelu(g) &&
        multiply_by_cublas(stream_of(launch), g, memory_for(g, pieces).workspace))
      return;
    return run_gelu_apart(g, [&](const auto& part) { run(launch, part); });
  }
  const cudaStream_t stream = stream_of(launch);
  if (depth_of(g) == 0) {
    if (g.beta == 1 && g.bias.empty()) return;
    map<1, 1>(stream, {ConstMatrix(g.c)}, {g.c}, FinishNothing{finish_of(g.c, g)}, true);
    return;
  }
  Pieces pieces(launch);
  const Memory memory = memory_for(g, pieces);
  if (is_mixed(g)) {
    ConstMatrix& wide = g.a.dtype == Dtype::kFp32 ? g.a : g.b;
    wide = rounded(stream, wide, memory.rounded);
  }
  if (needs_panels(g)) return multiply_in_panels(stream, g, memory);
  const bool may_fuse = g.bias.empty() || g.bias.dtype == g.c.dtype;  // else c is fp32
  if (may_fuse && multiply_by_cublas(stream, g, memory.workspace)) return;
  g.bias = {};
  multiply_by_cublas_or_throw(stream, g, memory.workspace);
  if (!original.bias.empty()) run(launch, BiasAdd{.x = g.c, .bias = original.bias, .y = g.c});
}

}  // namespace meshwright::cuda
