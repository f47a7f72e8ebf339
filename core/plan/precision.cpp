#include "core/plan/precision.hpp"

#include <array>

#include "core/base/check.hpp"
#include "core/base/value_named.hpp"

namespace meshwright {
namespace {

struct RecipeRow {
  std::string_view name;
  ProductFormat format;
  Quantization quantization;
};
constexpr std::array<RecipeRow, 4> kRecipes{{
    {"delayed", ProductFormat::kFp8, {}},
    {"tensorwise", ProductFormat::kFp8, {.finds_maximum = true}},
    {"blockwise", ProductFormat::kFp8Block, {.block = 128, .scale_bits = 32}},
    {"mxfp8", ProductFormat::kMxfp8, {.block = 32, .scale_bits = 8}},
}};
constexpr Quantization kNvfp4{.element_bits = 4,
                              .block = 16,
                              .scale_bits = 8,
                              .finds_maximum = true,
                              .separate_copies = true};

}  // namespace

std::string_view name_of(Fp8Recipe recipe) {
  return kRecipes[static_cast<std::size_t>(recipe)].name;
}

std::optional<Fp8Recipe> fp8_recipe_from_name(std::string_view name) {
  return value_named<Fp8Recipe>(name, static_cast<int>(kRecipes.size()));
}

Quantization quantization_of(Dtype dtype, Fp8Recipe recipe) {
  MW_CHECK(is_quantized(dtype));
  return dtype == Dtype::kNvfp4 ? kNvfp4 : kRecipes[static_cast<std::size_t>(recipe)].quantization;
}

ProductFormat product_format_of(Dtype dtype, Fp8Recipe recipe) {
  return dtype == Dtype::kFp8 ? kRecipes[static_cast<std::size_t>(recipe)].format
                              : product_format_of(dtype);
}

Bytes quantized_bytes(const Quantization& q, std::int64_t elements) {
  constexpr std::int64_t kByteBits = 8;
  const std::int64_t scales = q.block > 0 ? divide_up(elements, q.block) * q.scale_bits : 0;
  return Bytes(divide_up(elements * q.element_bits + scales, kByteBits));
}

std::optional<Dtype> gradient_dtype_from_name(std::string_view name) {
  const std::optional<Dtype> dtype = dtype_from_name(name);
  if (dtype == Dtype::kFp32 || dtype == Dtype::kBf16 || dtype == Dtype::kFp16) return dtype;
  return std::nullopt;
}

}  // namespace meshwright
