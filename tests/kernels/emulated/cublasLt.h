// CPU emulation of cuBLASLt as far as kernels/cuda/cublas.cpp uses it: column-major matrices, sums in double.
// It rejects what the documentation does not list ("cublasLtMatmul", table of supported types):
// fp32 operands with a bf16 result, operands of different types, a bias of neither the result's
// type nor, for fp32 results of bf16 operands, bf16.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

#include "kernels/reference/activation_formulas.hpp"
#include "kernels/bfloat16.hpp"

enum cublasStatus_t {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_NOT_SUPPORTED = 15
};
enum cudaDataType { CUDA_R_32F = 0, CUDA_R_16BF = 14 };
enum cublasComputeType_t { CUBLAS_COMPUTE_32F = 68 };
enum cublasOperation_t { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 };
enum cublasLtEpilogue_t {
  CUBLASLT_EPILOGUE_DEFAULT = 1,
  CUBLASLT_EPILOGUE_BIAS = 4,
  CUBLASLT_EPILOGUE_GELU_AUX = 32 | 128,
  CUBLASLT_EPILOGUE_GELU_AUX_BIAS = 32 | 128 | 4,
  CUBLASLT_EPILOGUE_DGELU = 64 | 128,
};
enum cublasLtMatmulDescAttributes_t {
  CUBLASLT_MATMUL_DESC_TRANSA = 3,
  CUBLASLT_MATMUL_DESC_TRANSB = 4,
  CUBLASLT_MATMUL_DESC_EPILOGUE = 7,
  CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER = 11,
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD = 12,
  CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE = 26
};
enum cublasLtMatmulPreferenceAttributes_t {
  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,
  CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8
};
enum { CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2 };

namespace emulated {

struct Layout {
  cudaDataType type;
  std::uint64_t rows, columns;
  std::int64_t leading;
};
struct Product {
  cublasOperation_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
  cudaDataType bias_type = CUDA_R_32F;
  void* beside = nullptr;  ///< what GELU is taken of: written forward, read backward
  std::int64_t beside_leading = 0;
};
inline float element(const void* data, cudaDataType type, std::int64_t i) {
  if (type == CUDA_R_32F) return static_cast<const float*>(data)[i];
  return meshwright::from_bf16(static_cast<const std::uint16_t*>(data)[i]);
}
inline void set_element(void* data, cudaDataType type, std::int64_t i, double value) {
  if (type == CUDA_R_32F)
    static_cast<float*>(data)[i] = static_cast<float>(value);
  else
    static_cast<std::uint16_t*>(data)[i] = meshwright::to_bf16(static_cast<float>(value));
}

}  // namespace emulated

using cublasLtHandle_t = int*;
using cublasLtMatrixLayout_t = emulated::Layout*;
using cublasLtMatmulDesc_t = emulated::Product*;
using cublasLtMatmulPreference_t = int*;
struct cublasLtMatmulAlgo_t {
  int number;
};
struct cublasLtMatmulHeuristicResult_t {
  cublasLtMatmulAlgo_t algo;
  cublasStatus_t state;
};

inline const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED ? "not supported" : "invalid value";
}
inline std::size_t cublasLtGetVersion() { return 0; }
inline cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  static int only = 1;  // callers keep theirs as long as the program runs
  *handle = &only;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                                 std::uint64_t rows, std::uint64_t columns,
                                                 std::int64_t leading) {
  if (rows == 0 || columns == 0 || leading < static_cast<std::int64_t>(rows))
    return CUBLAS_STATUS_INVALID_VALUE;
  *layout = new emulated::Layout{type, rows, columns, leading};
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description,
                                               cublasComputeType_t, cudaDataType) {
  *description = new emulated::Product;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  delete description;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d,
                                                     cublasLtMatmulDescAttributes_t what,
                                                     const void* value, std::size_t size) {
  void* to = nullptr;
  std::size_t wanted = 4;
  switch (what) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      to = &d->transpose_a;
      break;
    case CUBLASLT_MATMUL_DESC_TRANSB:
      to = &d->transpose_b;
      break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      to = &d->epilogue;
      break;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      to = &d->bias;
      wanted = sizeof(void*);
      break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      to = &d->beside;
      wanted = sizeof(void*);
      break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      to = &d->beside_leading;
      wanted = sizeof(std::int64_t);
      break;
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      to = &d->bias_type;
      break;
  }
  if (size != wanted) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(to, value, size);
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new int(1);
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t what, const void*,
    std::size_t size) {
  const bool is_size = what == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
  return size == (is_size ? 8 : 4) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

inline cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
    cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int,
    cublasLtMatmulHeuristicResult_t* found, int* count) {
  *count = 0;
  if (a->type != b->type) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (a->type == CUDA_R_32F && c->type != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  if ((d->epilogue & CUBLASLT_EPILOGUE_BIAS) != 0 && d->bias_type != c->type)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const bool has_gelu = (d->epilogue & 128) != 0;
  if (has_gelu &&
      (d->beside_leading % 8 != 0 || d->beside_leading < static_cast<std::int64_t>(c->rows) ||
       reinterpret_cast<std::uintptr_t>(d->beside) % 16 != 0))
    return CUBLAS_STATUS_INVALID_VALUE;
  found[0] = {{1}, CUBLAS_STATUS_SUCCESS};
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

/// d = alpha op(a) op(b) + beta c + bias of the row, all in columns.
inline cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t product,
                                     const void* alpha, const void* a, cublasLtMatrixLayout_t la,
                                     const void* b, cublasLtMatrixLayout_t lb, const void* beta,
                                     const void* c, cublasLtMatrixLayout_t lc, void* d,
                                     cublasLtMatrixLayout_t ld, const cublasLtMatmulAlgo_t*, void*,
                                     std::size_t, cudaStream_t) {
  const emulated::DeviceAtWork at_work;
  const bool ta = product->transpose_a == CUBLAS_OP_T, tb = product->transpose_b == CUBLAS_OP_T;
  const std::uint64_t rows = ta ? la->columns : la->rows, depth = ta ? la->rows : la->columns;
  const std::uint64_t columns = tb ? lb->rows : lb->columns;
  if (depth != (tb ? lb->columns : lb->rows) || ld->rows != rows || ld->columns != columns ||
      lc->rows != rows || lc->columns != columns)
    return CUBLAS_STATUS_INVALID_VALUE;
  const auto at = [](const emulated::Layout* l, std::uint64_t row, std::uint64_t column) {
    return static_cast<std::int64_t>(row) + static_cast<std::int64_t>(column) * l->leading;
  };
  const float scale = *static_cast<const float*>(alpha), keeps = *static_cast<const float*>(beta);
  for (std::uint64_t j = 0; j < columns; ++j)
    for (std::uint64_t i = 0; i < rows; ++i) {
      double sum = 0;
      for (std::uint64_t k = 0; k < depth; ++k)
        sum +=
            static_cast<double>(emulated::element(a, la->type, ta ? at(la, k, i) : at(la, i, k))) *
            static_cast<double>(emulated::element(b, lb->type, tb ? at(lb, j, k) : at(lb, k, j)));
      sum *= static_cast<double>(scale);
      if (keeps != 0)
        sum += static_cast<double>(keeps) *
               static_cast<double>(emulated::element(c, lc->type, at(lc, i, j)));
      if ((product->epilogue & CUBLASLT_EPILOGUE_BIAS) != 0)
        sum += static_cast<double>(
            emulated::element(product->bias, product->bias_type, static_cast<std::int64_t>(i)));
      const std::int64_t place =
          static_cast<std::int64_t>(i) + static_cast<std::int64_t>(j) * product->beside_leading;
      if (product->epilogue == CUBLASLT_EPILOGUE_DGELU) {
        sum *= meshwright::gelu_tanh_slope(
            static_cast<double>(emulated::element(product->beside, ld->type, place)));
      } else if ((product->epilogue & CUBLASLT_EPILOGUE_GELU_AUX) == CUBLASLT_EPILOGUE_GELU_AUX) {
        emulated::set_element(product->beside, ld->type, place, sum);
        sum = meshwright::gelu_tanh(sum);
      }
      emulated::set_element(d, ld->type, at(ld, i, j), sum);
    }
  return CUBLAS_STATUS_SUCCESS;
}
