/// The safetensors format: named arrays in a single file
/// (github.com/huggingface/safetensors: 8 bytes of header length, a JSON header, the data).
///
/// Little-endian, like all supported machines. Tensors are written in fp32, back to back in header
/// order, without gaps; those in fp16 or bf16 are read as fp32, which holds all their values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

struct NamedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;  ///< row-major
  friend bool operator==(const NamedTensor&, const NamedTensor&) = default;
};

struct TensorFile {
  std::map<std::string, std::string> metadata;
  std::vector<NamedTensor> tensors;
  friend bool operator==(const TensorFile&, const TensorFile&) = default;
};

inline constexpr std::size_t kLargestTensorHeader = 100'000'000;  ///< bytes; limit of the format
inline constexpr std::size_t kLargestTensorFile = std::size_t{64} << 30;

/// Names must be unique and not "__metadata__"; the number of values must match the shape.
std::string to_safetensors(const TensorFile& file);

/// Throws InputError at `where` for invalid files: too short, header too long or not JSON, dtypes
/// other than F32, F16 and BF16, shapes that do not match the offsets, gaps, overlaps, truncated or
/// trailing data. Linear in the content.
TensorFile tensors_from_safetensors(std::string_view content, std::string_view where);

}  // namespace meshwright
