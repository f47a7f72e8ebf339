#include "models/onnx/causal_masks.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "core/base/error.hpp"
#include "core/formats/file.hpp"

namespace meshwright::onnx {
namespace {

/// Operators that order positions.
constexpr std::string_view kOrders[] = {"Greater", "GreaterOrEqual", "Less", "LessOrEqual"};

/// A row with a column: the result has more elements than either.
bool compares_positions(const std::vector<GraphTensor>& tensors,
                        const std::vector<std::int32_t>& inputs, std::int32_t result,
                        std::string_view operation) {
  if (std::ranges::find(kOrders, operation) == std::end(kOrders)) return false;
  const auto elements = [&](std::int32_t tensor) {
    return *element_count(*tensors[static_cast<std::size_t>(tensor)].dims);
  };
  if (result < 0 || !tensors[static_cast<std::size_t>(result)].dims) return false;
  return std::ranges::all_of(
      inputs, [&](std::int32_t input) { return input >= 0 && elements(input) < elements(result); });
}

/// Numbers below are masks; above are biases.
constexpr float kLowest = -1e4F;
/// Convolutions have smaller kernels.
constexpr std::int64_t kLeastPositions = 16;

bool is_square(const Dimensions& dims) {
  return dims.size() >= 2 && dims.back() == dims[dims.size() - 2];
}

/// `hides(row, column)` of a matrix.
template <class Hides>
bool is_causal_matrix(std::size_t positions, const Hides& hides) {
  for (std::size_t row = 0; row < positions; ++row)
    for (std::size_t column = row + 1; column < positions; ++column)
      if (!hides(row, column)) return false;
  return true;
}

float float_at(std::string_view bytes, std::size_t index) {
  float value = 0;
  std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
  return value;
}

/// Empty if they cannot be read. Files outside of the directory are not read.
std::optional<std::string> read_external(const std::string& directory, const ExternalData& data,
                                         std::int64_t size) {
  const std::filesystem::path location(data.location);
  if (location.is_absolute() || std::ranges::count(location, "..") > 0) return std::nullopt;
  const std::string path = (std::filesystem::path(directory) / location).string();
  try {
    if (data.offset > size_of_file(path)) return std::nullopt;  // also of what is no regular file
    return read_part(path, data.offset, static_cast<std::size_t>(size));
  } catch (const InputError&) {
    return std::nullopt;
  }
}

}  // namespace

bool may_be_mask(ElementType type, const Dimensions& dims) {
  if (!is_square(dims)) return false;
  return type == ElementType::kBool ||
         (type == ElementType::kFloat && dims.size() > 2 && dims.back() >= kLeastPositions);
}

std::optional<bool> is_causal_mask(std::string_view bytes, ElementType type,
                                   const Dimensions& dims) {
  const std::optional<std::int64_t> count = element_count(dims);
  if (!is_square(dims) || !count || *count == 0 ||
      bytes.size() != static_cast<std::size_t>(*count * bytes_of(type)))
    return std::nullopt;
  const auto positions = static_cast<std::size_t>(dims.back());
  const std::size_t matrix = positions * positions;
  for (std::size_t at = 0; at < static_cast<std::size_t>(*count); at += matrix) {
    const auto hides = [&](std::size_t row, std::size_t column) {
      const std::size_t here = at + row * positions + column, diagonal = at + row * positions + row;
      if (type == ElementType::kBool) return (bytes[here] != 0) != (bytes[diagonal] != 0);
      return float_at(bytes, here) <= kLowest && float_at(bytes, diagonal) > kLowest;
    };
    if (!is_causal_matrix(positions, hides)) return false;
  }
  return true;
}

bool StoredMasks::is_causal(const TensorLiteral& literal) {
  if (!may_be_mask(literal.type, literal.dims)) return false;
  if (literal.is_causal_mask) return *literal.is_causal_mask;
  const bool if_missing = literal.type == ElementType::kBool;
  const std::int64_t size = element_count(literal.dims).value_or(0) * bytes_of(literal.type);
  if (!literal.external || directory_.empty() || size > bytes_left_) return if_missing;
  bytes_left_ -= size;
  const std::optional<std::string> bytes = read_external(directory_, *literal.external, size);
  if (!bytes) return if_missing;
  return is_causal_mask(*bytes, literal.type, literal.dims).value_or(if_missing);
}

void mark_triangular(std::vector<GraphTensor>& tensors, const std::vector<std::int32_t>& inputs,
                     const std::vector<std::int32_t>& outputs, std::string_view operation,
                     bool passes_on) {
  const bool is_gather = operation.starts_with("Gather");
  bool is_triangular =
      operation == "Trilu" || compares_positions(tensors, inputs, outputs[0], operation);
  for (std::size_t i = 0; i < inputs.size() && (i == 0 || !is_gather); ++i)
    is_triangular = is_triangular || (inputs[i] >= 0 && (passes_on || is_gather) &&
                                      tensors[static_cast<std::size_t>(inputs[i])].is_triangular);
  for (const std::int32_t output : outputs)
    if (output >= 0) tensors[static_cast<std::size_t>(output)].is_triangular = is_triangular;
}

}  // namespace meshwright::onnx
