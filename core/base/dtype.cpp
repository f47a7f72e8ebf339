#include "core/base/dtype.hpp"

#include <array>

#include "core/base/value_named.hpp"

namespace meshwright {
namespace {
struct DtypeRow {
  std::string_view name;
  int bytes;
};
constexpr std::array<DtypeRow, kDtypeCount> kRows{
    {{"fp32", 4}, {"tf32", 4}, {"bf16", 2}, {"fp16", 2}, {"fp8", 1}, {"nvfp4", 1}}};
constexpr std::array<std::string_view, kProductFormatCount> kFormats{
    "fp32", "tf32", "bf16", "fp16", "fp8", "fp8-block", "mxfp8", "nvfp4"};
}  // namespace

std::string_view name_of(Dtype dtype) { return kRows[static_cast<std::size_t>(dtype)].name; }

std::optional<Dtype> dtype_from_name(std::string_view name) {
  return value_named<Dtype>(name, kDtypeCount);
}

Dtype storage_dtype(Dtype dtype) { return is_quantized(dtype) ? Dtype::kBf16 : dtype; }

int bytes_per_element(Dtype dtype) { return kRows[static_cast<std::size_t>(dtype)].bytes; }

std::string_view name_of(ProductFormat format) {
  return kFormats[static_cast<std::size_t>(format)];
}
std::optional<ProductFormat> product_format_from_name(std::string_view name) {
  return value_named<ProductFormat>(name, kProductFormatCount);
}
ProductFormat product_format_of(Dtype dtype) {
  // The same order, but for the recipes of fp8.
  return dtype == Dtype::kNvfp4 ? ProductFormat::kNvfp4 : static_cast<ProductFormat>(dtype);
}

}  // namespace meshwright
