#include "models/onnx/graph_tensor.hpp"

namespace meshwright::onnx {

bool is_floating(ElementType type) {
  switch (type) {
    case ElementType::kFloat:
    case ElementType::kFloat16:
    case ElementType::kDouble:
    case ElementType::kBfloat16:
      return true;
    default:
      return false;
  }
}

bool is_integer(ElementType type) {
  constexpr int kUint16 = 4, kInt16 = 5, kUint32 = 12, kUint64 = 13;
  const int number = static_cast<int>(type);
  return type == ElementType::kInt64 || type == ElementType::kInt32 ||
         type == ElementType::kUint8 || type == ElementType::kInt8 || number == kUint16 ||
         number == kInt16 || number == kUint32 || number == kUint64;
}

int bytes_of(ElementType type) {
  // By DataType: float, uint8, int8, uint16, int16, int32, int64, string, bool, float16, double,
  // uint32, uint64, complex64, complex128, bfloat16, four kinds of float8.
  constexpr int kBytes[] = {0, 4, 1, 1, 2, 2, 4, 8, 0, 1, 2, 8, 4, 8, 8, 16, 2, 1, 1, 1, 1};
  const auto number = static_cast<std::size_t>(type);
  return number < sizeof(kBytes) / sizeof(kBytes[0]) ? kBytes[number] : 1;
}

std::optional<std::int64_t> element_count(const Dimensions& dims) {
  std::int64_t count = 1;
  bool is_empty = false;
  for (const std::int64_t dim : dims) {
    if (dim < 0) return std::nullopt;
    if (dim == 0) {
      is_empty = true;
      continue;
    }
    if (dim > kMostElements / count) return std::nullopt;
    count *= dim;
  }
  return is_empty ? 0 : count;
}

}  // namespace meshwright::onnx
