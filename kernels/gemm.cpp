#include "kernels/gemm.hpp"

#include <cstddef>

namespace meshwright {
namespace {

struct RowRange {
  std::int64_t first = 0, count = 0;
};
RowRange rows_of_expert(std::span<const std::int64_t> offsets, std::int64_t expert) {
  const std::int64_t first = offsets[static_cast<std::size_t>(expert)];
  return {first, offsets[static_cast<std::size_t>(expert) + 1] - first};
}

}  // namespace

Gemm product_of(const GroupedGemm& group, std::int64_t expert) {
  const RowRange rows = rows_of_expert(group.offsets, expert);
  const std::int64_t height = group.transpose_weights ? group.y.columns : group.x.columns;
  Gemm product{.a = rows_of(group.x, rows.first, rows.count),
               .b = rows_of(group.weights, expert * height, height),
               .transpose_b = group.transpose_weights,
               .c = rows_of(group.y, rows.first, rows.count)};
  if (!group.bias.empty()) {
    const ConstMatrix bias = rows_of(group.bias, expert, 1);
    product.bias = {bias.data, bias.columns, bias.dtype};
  }
  return product;
}

Gemm product_of(const GroupedGemmWeight& group, std::int64_t expert) {
  const RowRange rows = rows_of_expert(group.offsets, expert);
  const std::int64_t height = group.x.columns;
  return {.a = rows_of(group.x, rows.first, rows.count),
          .transpose_a = true,
          .b = rows_of(group.dy, rows.first, rows.count),
          .c = rows_of(group.dweights, expert * height, height),
          .beta = 1};
}

}  // namespace meshwright
