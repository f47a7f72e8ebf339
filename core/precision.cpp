#include "core/precision.hpp"

namespace meshwright {

std::optional<Dtype> gradient_dtype_from_name(std::string_view name) {
  const std::optional<Dtype> dtype = dtype_from_name(name);
  if (dtype == Dtype::kFp32 || dtype == Dtype::kBf16 || dtype == Dtype::kFp16) return dtype;
  return std::nullopt;
}

}  // namespace meshwright
