// Matrix products by cuBLASLt, with fused bias and GELU. cuBLASLt is column-major: our row-major
// c = a b is its c^T = b^T a^T, so a and b are swapped and nothing is copied.
//
// bf16 operands use the tensor cores, fp32 operands full fp32 (no tf32). If one operand is bf16 and
// the other fp32, the latter is rounded to bf16 first. Combinations that cuBLASLt cannot write
// (fp32 operands to bf16, an fp32 bias on bf16) are computed in fp32 panels of rows and finished by
// our own kernel.
#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "core/base/error.hpp"
#include "kernels/cuda/pack.hpp"

namespace meshwright::cuda {
namespace {

/// NVIDIA's recommendation for Hopper (cuBLAS documentation, cublasSetWorkspace); used for all
/// devices.
constexpr std::int64_t kWorkspace = std::int64_t{32} << 20;
constexpr std::int64_t kPanelBytes = std::int64_t{32} << 20;

void check_blas(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw RuntimeFailure({.where = "cuBLASLt",
                        .what = std::string(call) + ": " + cublasLtGetStatusString(status),
                        .hint = ""});
}

// ---- descriptors with the lifetime of a call ----------------------------------------------

template <class T, cublasStatus_t (*kDestroy)(T)>
struct Owned {
  T value = nullptr;
  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { kDestroy(value); }
};
using Layout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Description = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

cudaDataType type_of(Dtype dtype) { return dtype == Dtype::kBf16 ? CUDA_R_16BF : CUDA_R_32F; }

std::int64_t leading(const ConstMatrix& m) {
  const std::int64_t least = m.columns > 1 ? m.columns : 1;
  return m.stride > least ? m.stride : least;
}
void describe(Layout& layout, const ConstMatrix& m) {
  check_blas(cublasLtMatrixLayoutCreate(&layout.value, type_of(m.dtype),
                                        static_cast<std::uint64_t>(m.columns),
                                        static_cast<std::uint64_t>(m.rows), leading(m)),
             "cublasLtMatrixLayoutCreate");
}
template <class T>
void set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t what, const T& value) {
  check_blas(cublasLtMatmulDescSetAttribute(description, what, &value, sizeof(value)),
             "cublasLtMatmulDescSetAttribute");
}
template <class T>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t what,
         const T& value) {
  check_blas(cublasLtMatmulPreferenceSetAttribute(preference, what, &value, sizeof(value)),
             "cublasLtMatmulPreferenceSetAttribute");
}

/// Largest power of two up to 256 that divides an address.
std::uint32_t alignment_of(const void* data) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  std::uint32_t alignment = 256;
  while (address % alignment != 0) alignment /= 2;
  return alignment;
}

// ---- algorithms, chosen once per shape ----------------------------------------------------

/// Everything that the choice depends on.
using ShapeKey = std::array<std::int64_t, 21>;

int current_device() {
  int device = 0;
  MESHWRIGHT_CUDA(cudaGetDevice(&device));
  return device;
}

/// The result that cuBLASLt writes, and the auxiliary matrix that its GELU writes or reads.
const Matrix& result_of(const Gemm& g) { return g.gelu.empty() ? g.c : g.gelu; }
ConstMatrix beside_of(const Gemm& g) { return g.gelu.empty() ? g.slope_at : ConstMatrix(g.c); }

cublasLtEpilogue_t epilogue_of(const Gemm& g) {
  if (!g.slope_at.empty()) return CUBLASLT_EPILOGUE_DGELU;
  if (!g.gelu.empty())
    return g.bias.empty() ? CUBLASLT_EPILOGUE_GELU_AUX : CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
  return g.bias.empty() ? CUBLASLT_EPILOGUE_DEFAULT : CUBLASLT_EPILOGUE_BIAS;
}

ShapeKey key_of(const Gemm& g) {
  const Matrix& result = result_of(g);
  const ConstMatrix beside = beside_of(g);
  const std::uint32_t bias = g.bias.empty() ? 256 : alignment_of(g.bias.data);
  return {g.a.rows,
          g.a.columns,
          leading(g.a),
          static_cast<std::int64_t>(g.a.dtype),
          g.transpose_a,
          g.b.rows,
          g.b.columns,
          leading(g.b),
          static_cast<std::int64_t>(g.b.dtype),
          g.transpose_b,
          leading(result),
          static_cast<std::int64_t>(result.dtype),
          alignment_of(g.a.data),
          alignment_of(g.b.data),
          alignment_of(result.data),
          bias,
          beside.empty() ? 0 : leading(beside),
          beside.empty() ? 256 : alignment_of(beside.data),
          static_cast<std::int64_t>(epilogue_of(g)),
          g.beta != 0,
          current_device()};
}

/// Shared by all host threads, with one handle per device.
struct Library {
  std::mutex mutex;
  std::map<int, cublasLtHandle_t> handles;
  std::map<ShapeKey, cublasLtMatmulAlgo_t> algorithms;
};
Library& library() {
  static Library shared;  // a cache that does not affect results
  return shared;
}
cublasLtHandle_t handle() {
  Library& l = library();
  const std::lock_guard lock(l.mutex);
  cublasLtHandle_t& mine = l.handles[current_device()];
  if (mine == nullptr) check_blas(cublasLtCreate(&mine), "cublasLtCreate");
  return mine;
}

struct Call {
  Description description;
  Layout left, right, result;
};

void describe(Preference& preference, const Gemm& g) {
  check_blas(cublasLtMatmulPreferenceCreate(&preference.value), "cublasLtMatmulPreferenceCreate");
  set(preference.value, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
      static_cast<std::size_t>(kWorkspace));
  // Partial sums in fp32, added in a fixed order.
  const std::uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  set(preference.value, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes);
  set(preference.value, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(g.b.data));
  set(preference.value, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(g.a.data));
  std::uint32_t out = alignment_of(result_of(g).data);
  set(preference.value, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, out);
  if (!g.bias.empty() && alignment_of(g.bias.data) < out) out = alignment_of(g.bias.data);
  set(preference.value, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, out);
}

/// nvcc 13.0 crashes on containers of cuBLASLt's own types, which are unnamed structs.
struct Algorithm {
  cublasLtMatmulAlgo_t value;
};
constexpr int kMostAlgorithms = 32;

/// Up to `most` algorithms, the one that cuBLASLt expects to be fastest first; may be empty.
std::vector<Algorithm> algorithms_for(const Call& call, const Gemm& g, int most) {
  Preference preference;
  describe(preference, g);
  MW_CHECK(most <= kMostAlgorithms);
  cublasLtMatmulHeuristicResult_t found[kMostAlgorithms] = {};
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle(), call.description.value, call.left.value, call.right.value, call.result.value,
      call.result.value, preference.value, most, found, &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
  check_blas(status, "cublasLtMatmulAlgoGetHeuristic");
  std::vector<Algorithm> algorithms;
  for (int i = 0; i < count; ++i)
    if (found[i].state == CUBLAS_STATUS_SUCCESS) algorithms.push_back({found[i].algo});
  return algorithms;
}

std::optional<cublasLtMatmulAlgo_t> algorithm_for(const Call& call, const Gemm& g) {
  Library& l = library();
  const ShapeKey key = key_of(g);
  {
    const std::lock_guard lock(l.mutex);
    const auto known = l.algorithms.find(key);
    if (known != l.algorithms.end()) return known->second;
  }
  const std::vector<Algorithm> algorithms = algorithms_for(call, g, 1);
  if (algorithms.empty()) return std::nullopt;
  const std::lock_guard lock(l.mutex);
  return l.algorithms.emplace(key, algorithms.front().value).first->second;
}

void describe(Call& call, const Gemm& g) {
  check_blas(cublasLtMatmulDescCreate(&call.description.value, CUBLAS_COMPUTE_32F, CUDA_R_32F),
             "cublasLtMatmulDescCreate");
  set(call.description.value, CUBLASLT_MATMUL_DESC_TRANSA,
      g.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(call.description.value, CUBLASLT_MATMUL_DESC_TRANSB,
      g.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(call.description.value, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(g));
  if (has_gelu(g)) {
    const ConstMatrix beside = beside_of(g);
    set(call.description.value, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, beside.data);
    set(call.description.value, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, leading(beside));
  }
  if (!g.bias.empty()) {
    set(call.description.value, CUBLASLT_MATMUL_DESC_BIAS_POINTER, g.bias.data);
    set(call.description.value, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(g.bias.dtype));
  }
  describe(call.left, g.b);
  describe(call.right, g.a);
  describe(call.result, result_of(g));
}

cublasStatus_t multiply_by(const cublasLtMatmulAlgo_t& algorithm, const Call& call, const Gemm& g,
                           cudaStream_t stream, std::byte* workspace) {
  const float alpha = 1;
  void* result = result_of(g).data;
  return cublasLtMatmul(handle(), call.description.value, &alpha, g.b.data, call.left.value,
                        g.a.data, call.right.value, &g.beta, result, call.result.value, result,
                        call.result.value, &algorithm, workspace, kWorkspace, stream);
}

/// c = op(a) op(b) + beta c + bias, with dtypes that cuBLASLt can combine and nothing empty.
/// Returns false without any effect if it has no algorithm.
bool multiply(cudaStream_t stream, const Gemm& g, std::byte* workspace) {
  Call call;
  describe(call, g);
  const std::optional<cublasLtMatmulAlgo_t> algorithm = algorithm_for(call, g);
  if (!algorithm) return false;
  check_blas(multiply_by(*algorithm, call, g, stream, workspace), "cublasLtMatmul");
  return true;
}
void multiply_surely(cudaStream_t stream, const Gemm& g, std::byte* workspace) {
  if (!multiply(stream, g, workspace))
    check_blas(CUBLAS_STATUS_NOT_SUPPORTED, "cublasLtMatmulAlgoGetHeuristic");
}

// ---- conversions and epilogues ------------------------------------------------------------

bool is_mixed(const Gemm& g) { return g.a.dtype != g.b.dtype; }
/// The dtype in which both operands are multiplied.
Dtype operand_dtype(const Gemm& g) {
  return g.a.dtype == Dtype::kFp32 && g.b.dtype == Dtype::kFp32 ? Dtype::kFp32 : Dtype::kBf16;
}
bool needs_panels(const Gemm& g) {
  if (g.c.dtype == Dtype::kFp32) return false;
  return operand_dtype(g) == Dtype::kFp32 || (!g.bias.empty() && g.bias.dtype == Dtype::kFp32);
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
    multiply_surely(stream, part, memory.workspace);
    const Matrix c = rows_of(g.c, first, rows);
    map<1, 1>(stream, {ConstMatrix(panel)}, {c}, finish_of(c, g), true);
  }
}

/// cuBLASLt's GELU requires auxiliary rows of multiples of 8, which are read 16 bytes at once.
bool may_fuse_gelu(const Gemm& g) {
  const ConstMatrix beside = beside_of(g);
  const Dtype dtype = g.c.dtype;
  return has_gelu(g) && depth_of(g) > 0 && g.beta == 0 && g.a.dtype == dtype &&
         g.b.dtype == dtype && result_of(g).dtype == dtype && beside.dtype == dtype &&
         (g.bias.empty() || g.bias.dtype == dtype) && leading(beside) % 8 == 0 &&
         alignment_of(beside.data) >= 16;
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
    if (may_fuse_gelu(g) && multiply(stream_of(launch), g, memory_for(g, pieces).workspace)) return;
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
  if (may_fuse && multiply(stream, g, memory.workspace)) return;
  g.bias = {};
  multiply_surely(stream, g, memory.workspace);
  if (!original.bias.empty()) run(launch, BiasAdd{.x = g.c, .bias = original.bias, .y = g.c});
}

// ---- for reports: the fastest algorithm ---------------------------------------------------------

namespace {

/// Shortest time of five consecutive products by one algorithm.
double seconds_by(const cublasLtMatmulAlgo_t& algorithm, const Call& call, const Gemm& g,
                  std::byte* workspace) {
  constexpr int kRounds = 5, kRepeats = 3;
  cudaEvent_t first = nullptr, last = nullptr;
  MESHWRIGHT_CUDA(cudaEventCreate(&first));
  MESHWRIGHT_CUDA(cudaEventCreate(&last));
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    MESHWRIGHT_CUDA(cudaEventRecord(first));
    bool failed = false;
    for (int i = 0; i < kRepeats; ++i)
      failed |= multiply_by(algorithm, call, g, nullptr, workspace) != CUBLAS_STATUS_SUCCESS;
    MESHWRIGHT_CUDA(cudaEventRecord(last));
    MESHWRIGHT_CUDA(cudaEventSynchronize(last));
    float milliseconds = 0;
    MESHWRIGHT_CUDA(cudaEventElapsedTime(&milliseconds, first, last));
    if (!failed && milliseconds > 0) best = std::min(best, 1e-3 * milliseconds / kRepeats);
  }
  MESHWRIGHT_CUDA(cudaEventDestroy(first));
  MESHWRIGHT_CUDA(cudaEventDestroy(last));
  return best;
}

}  // namespace
}  // namespace meshwright::cuda

/// Time in seconds of cuBLASLt's fastest algorithm for a product of bf16 matrices.
extern "C" __attribute__((visibility("default"))) double meshwright_cuda_best_product_seconds(
    const meshwright::Gemm& g) {
  using namespace meshwright::cuda;  // NOLINT: one function, of no namespace
  void* workspace = nullptr;
  MESHWRIGHT_CUDA(cudaMalloc(&workspace, kWorkspace));
  Call call;
  describe(call, g);
  double best = 1e9;
  for (const Algorithm& algorithm : algorithms_for(call, g, kMostAlgorithms))
    best = std::min(best, seconds_by(algorithm.value, call, g, static_cast<std::byte*>(workspace)));
  MESHWRIGHT_CUDA(cudaFree(workspace));
  return best;
}
