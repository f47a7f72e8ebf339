/// The safetensors format: named arrays in one file that many programs read
/// (github.com/huggingface/safetensors: 8 bytes of header length, a JSON header, the data).
///
/// Numbers are little-endian, as on every machine that this project runs on. Data are fp32 here;
/// tensors lie one behind another in the order of the header, without gaps.
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

inline constexpr std::size_t kLargestTensorHeader = 100'000'000;  ///< bytes, as the format says
inline constexpr std::size_t kLargestTensorFile = std::size_t{64} << 30;

/// Names must be unique and none "__metadata__"; values as many as the shape says.
std::string to_safetensors(const TensorFile& file);

/// Refuses with InputError at `where` what is no such file: too short, a header that is too long or
/// no JSON, other types than F32, shapes that do not agree with offsets, gaps, overlaps, data that
/// end early or go on. Linear in the content.
TensorFile tensors_from_safetensors(std::string_view content, std::string_view where);

}  // namespace meshwright
