/// Tensors of operator graphs: element types, shapes and small values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace meshwright::onnx {

/// TensorProto.DataType of ONNX. Types that are not listed are valid and have no arithmetic.
enum class ElementType : std::int32_t {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kInt32 = 6,
  kInt64 = 7,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kBfloat16 = 16
};
bool is_floating(ElementType type);
bool is_integer(ElementType type);
/// Bytes of an element in the file; 0: no fixed size.
int bytes_of(ElementType type);

using Dimensions = std::vector<std::int64_t>;

inline constexpr std::size_t kMostDimensions = 16;
inline constexpr std::int64_t kMostElements = std::int64_t{1} << 40;  ///< of one tensor
/// Values of larger tensors are not kept: only shapes are computed from values.
inline constexpr std::int64_t kMostKnownValues = 4096;

/// Empty if there are more than kMostElements, or a dimension is negative.
std::optional<std::int64_t> element_count(const Dimensions& dims);

struct GraphTensor {
  std::string name;
  ElementType type = ElementType::kUndefined;
  std::optional<Dimensions> dims;            ///< absent: not known yet
  std::optional<std::vector<double>> value;  ///< row-major
  std::int32_t view_of = -1;                 ///< the tensor whose memory it shares; -1: none
  std::int32_t producer = -1;                ///< index of its node; -1: input or initializer
  bool is_constant = false;                  ///< depends on neither inputs nor parameters
  /// Trainable initializers that it is, or that it was put together from; empty: it is not a
  /// parameter.
  std::vector<std::int32_t> parameters;
  bool needs_gradient = false;
  bool is_transposed = false;  ///< a view with its axes in another order
  /// A comparison of positions, or computed from one: a causal mask.
  bool is_triangular = false;

  bool is_parameter() const { return !parameters.empty(); }
};

}  // namespace meshwright::onnx
