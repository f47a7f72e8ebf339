// cuBLASLt is column-major: our row-major c = a b is its c^T = b^T a^T, so a and b are swapped and
// nothing is copied.
#include "kernels/cuda/cublas.hpp"

#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "core/base/error.hpp"

namespace meshwright::cuda {

std::int64_t leading_dimension(const ConstMatrix& m) {
  const std::int64_t least = m.columns > 1 ? m.columns : 1;
  return m.stride > least ? m.stride : least;
}

std::uint32_t alignment_of(const void* data) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  std::uint32_t alignment = 256;
  while (address % alignment != 0) alignment /= 2;
  return alignment;
}

const Matrix& result_of(const Gemm& g) { return g.gelu.empty() ? g.c : g.gelu; }
ConstMatrix auxiliary_of(const Gemm& g) { return g.gelu.empty() ? g.slope_at : ConstMatrix(g.c); }

namespace {

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

void describe(Layout& layout, const ConstMatrix& m) {
  check_blas(cublasLtMatrixLayoutCreate(&layout.value, type_of(m.dtype),
                                        static_cast<std::uint64_t>(m.columns),
                                        static_cast<std::uint64_t>(m.rows), leading_dimension(m)),
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

// ---- algorithms, chosen once per shape ----------------------------------------------------

/// Everything that the choice depends on.
using ShapeKey = std::array<std::int64_t, 21>;

int current_device() {
  int device = 0;
  MESHWRIGHT_CUDA(cudaGetDevice(&device));
  return device;
}

cublasLtEpilogue_t epilogue_of(const Gemm& g) {
  if (!g.slope_at.empty()) return CUBLASLT_EPILOGUE_DGELU;
  if (!g.gelu.empty())
    return g.bias.empty() ? CUBLASLT_EPILOGUE_GELU_AUX : CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
  return g.bias.empty() ? CUBLASLT_EPILOGUE_DEFAULT : CUBLASLT_EPILOGUE_BIAS;
}

ShapeKey key_of(const Gemm& g) {
  const Matrix& result = result_of(g);
  const ConstMatrix auxiliary = auxiliary_of(g);
  const std::uint32_t bias = g.bias.empty() ? 256 : alignment_of(g.bias.data);
  return {g.a.rows,
          g.a.columns,
          leading_dimension(g.a),
          static_cast<std::int64_t>(g.a.dtype),
          g.transpose_a,
          g.b.rows,
          g.b.columns,
          leading_dimension(g.b),
          static_cast<std::int64_t>(g.b.dtype),
          g.transpose_b,
          leading_dimension(result),
          static_cast<std::int64_t>(result.dtype),
          alignment_of(g.a.data),
          alignment_of(g.b.data),
          alignment_of(result.data),
          bias,
          auxiliary.empty() ? 0 : leading_dimension(auxiliary),
          auxiliary.empty() ? 256 : alignment_of(auxiliary.data),
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

constexpr int kMaxAlgorithms = 32;

/// Up to `most` algorithms, the one that cuBLASLt expects to be fastest first; may be empty.
std::vector<cublasLtMatmulAlgo_t> algorithms_for(const Call& call, const Gemm& g, int most) {
  Preference preference;
  describe(preference, g);
  MW_CHECK(most <= kMaxAlgorithms);
  cublasLtMatmulHeuristicResult_t found[kMaxAlgorithms] = {};
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle(), call.description.value, call.left.value, call.right.value, call.result.value,
      call.result.value, preference.value, most, found, &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
  check_blas(status, "cublasLtMatmulAlgoGetHeuristic");
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  for (int i = 0; i < count; ++i)
    if (found[i].state == CUBLAS_STATUS_SUCCESS) algorithms.push_back(found[i].algo);
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
  const std::vector<cublasLtMatmulAlgo_t> algorithms = algorithms_for(call, g, 1);
  if (algorithms.empty()) return std::nullopt;
  const std::lock_guard lock(l.mutex);
  return l.algorithms.emplace(key, algorithms.front()).first->second;
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
    const ConstMatrix auxiliary = auxiliary_of(g);
    set(call.description.value, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, auxiliary.data);
    set(call.description.value, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, leading_dimension(auxiliary));
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

}  // namespace

bool multiply_by_cublas(cudaStream_t stream, const Gemm& g, std::byte* workspace) {
  Call call;
  describe(call, g);
  const std::optional<cublasLtMatmulAlgo_t> algorithm = algorithm_for(call, g);
  if (!algorithm) return false;
  check_blas(multiply_by(*algorithm, call, g, stream, workspace), "cublasLtMatmul");
  return true;
}
std::string cublas_version() {
  const std::size_t v = cublasLtGetVersion();  // 130100: 13.1.0
  return "cuBLASLt " + std::to_string(v / 10000) + "." + std::to_string(v / 100 % 100) + "." +
         std::to_string(v % 100);
}

void multiply_by_cublas_or_throw(cudaStream_t stream, const Gemm& g, std::byte* workspace) {
  if (!multiply_by_cublas(stream, g, workspace))
    check_blas(CUBLAS_STATUS_NOT_SUPPORTED, "cublasLtMatmulAlgoGetHeuristic");
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
  for (const cublasLtMatmulAlgo_t& algorithm : algorithms_for(call, g, kMaxAlgorithms))
    best = std::min(best, seconds_by(algorithm, call, g, static_cast<std::byte*>(workspace)));
  MESHWRIGHT_CUDA(cudaFree(workspace));
  return best;
}
