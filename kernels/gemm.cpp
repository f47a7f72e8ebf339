#include "kernels/gemm.hpp"

#include <cstddef>
#include <type_traits>

namespace meshwright {
namespace {

template <class View>
View moved(View view, std::int64_t elements) {
  if (view.data == nullptr) return view;
  const std::int64_t bytes = elements * bytes_per_element(view.dtype);
  if constexpr (std::is_same_v<View, Matrix>)
    view.data = static_cast<std::byte*>(view.data) + bytes;
  else
    view.data = static_cast<const std::byte*>(view.data) + bytes;
  return view;
}

struct RowRange {
  std::int64_t first = 0, count = 0;
};
RowRange rows_of_expert(std::span<const std::int64_t> offsets, std::int64_t expert) {
  const std::int64_t first = offsets[static_cast<std::size_t>(expert)];
  return {first, offsets[static_cast<std::size_t>(expert) + 1] - first};
}

}  // namespace

Gemm product_of(const BatchedGemm& batch, std::int64_t i) {
  Gemm product = batch.first;
  product.a = moved(product.a, i * batch.step_a);
  product.b = moved(product.b, i * batch.step_b);
  product.c = moved(product.c, i * batch.step_c);
  return product;
}

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
