/// Number formats of training.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace meshwright {

enum class Dtype : std::uint8_t { kFp32, kTf32, kBf16, kFp16, kFp8, kNvfp4 };
inline constexpr int kDtypeCount = 6;

/// "fp32", "tf32", "bf16", "fp16", "fp8", "nvfp4".
std::string_view name_of(Dtype dtype);
std::optional<Dtype> dtype_from_name(std::string_view name);
/// Bytes of one stored element (tf32 is stored as 4 bytes; nvfp4, two elements per byte, counts as
/// 1: see quantized_bytes() for sizes).
int bytes_per_element(Dtype dtype);
/// True for fp8 and nvfp4, to which operands of GEMMs are converted.
constexpr bool is_quantized(Dtype dtype) { return dtype == Dtype::kFp8 || dtype == Dtype::kNvfp4; }
/// The dtype of stored activations and weights: fp8 and nvfp4 training stores bf16 and converts
/// before each GEMM (Micikevicius et al., arXiv 2209.05433; as in Transformer Engine).
Dtype storage_dtype(Dtype dtype);
inline constexpr std::int64_t kFloat32Bytes = 4;  ///< of one fp32 element

/// Number format of the operands of a matrix product: a Dtype, or a recipe with finer scales.
enum class ProductFormat : std::uint8_t {
  kFp32,
  kTf32,
  kBf16,
  kFp16,
  kFp8,       ///< one scale per tensor
  kFp8Block,  ///< fp32 scales of 1 x 128 and 128 x 128 blocks (DeepSeek-V3, arXiv 2412.19437)
  kMxfp8,     ///< OCP MX: power-of-two scales of 32 elements
  kNvfp4      ///< 4 bits, fp8 scales of 16 elements
};
inline constexpr int kProductFormatCount = 8;
std::string_view name_of(
    ProductFormat format);  ///< "fp32", …, "fp8", "fp8-block", "mxfp8", "nvfp4"
std::optional<ProductFormat> product_format_from_name(std::string_view name);
ProductFormat product_format_of(Dtype dtype);

}  // namespace meshwright
