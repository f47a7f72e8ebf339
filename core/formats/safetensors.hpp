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

/// A file of which one tensor at a time is in memory.
class SafetensorsFile {
 public:
  struct Entry {
    std::string name;
    std::vector<std::int64_t> shape;
    std::size_t element = 0;          ///< its type, in a table of the implementation
    std::int64_t begin = 0, end = 0;  ///< of its data, after the header
  };
  /// Reads the header. Throws as tensors_from_safetensors(), and if the file cannot be read.
  explicit SafetensorsFile(std::string path);
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::vector<Entry>& entries() const { return entries_; }  ///< in the order of their data
  /// From several threads at once.
  std::vector<float> values(const Entry& entry) const;

 private:
  std::string path_;
  std::int64_t data_begin_ = 0;
  std::map<std::string, std::string> metadata_;
  std::vector<Entry> entries_;
};

}  // namespace meshwright
