/// Number formats of training.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace meshwright {

enum class Dtype : std::uint8_t { kFp32, kTf32, kBf16, kFp16, kFp8 };
inline constexpr int kDtypeCount = 5;

/// "fp32", "tf32", "bf16", "fp16", "fp8".
std::string_view name_of(Dtype dtype);
std::optional<Dtype> dtype_from_name(std::string_view name);
/// Bytes of one stored element (tf32 is stored as 4 bytes).
int bytes_per_element(Dtype dtype);
/// The dtype of stored activations and weights: fp8 training stores bf16 and converts before each
/// GEMM (Micikevicius et al., arXiv 2209.05433; as in Transformer Engine).
Dtype storage_dtype(Dtype dtype);
inline constexpr std::int64_t kFloat32Bytes = 4;  ///< of one fp32 element

}  // namespace meshwright
