/// Visitors over all kernels of a table and all fields of an argument struct. Internal to this
/// folder and its tests.
#pragma once

#include <cstddef>

#include "kernels/kernel_table.hpp"

namespace meshwright {

// ---- the fields of a struct of arguments --------------------------------------------------

namespace fields_detail {
struct Anything {
  template <class T>
  operator T() const;
};
template <class T, class... A>
constexpr std::size_t field_count() {
  if constexpr (requires { T{A{}..., Anything{}}; })
    return field_count<T, A..., Anything>();
  else
    return sizeof...(A);
}
}  // namespace fields_detail

/// Calls visit(field) for every field of an aggregate, in order.
template <class T, class Visit>
void for_each_field(T& object, Visit& visit) {
  constexpr std::size_t kCount = fields_detail::field_count<T>();
  static_assert(kCount >= 2 && kCount <= 12);
  const auto all = [&](auto&... fields) { (visit(fields), ...); };
  if constexpr (kCount == 2) {
    auto& [a, b] = object;
    all(a, b);
  } else if constexpr (kCount == 3) {
    auto& [a, b, c] = object;
    all(a, b, c);
  } else if constexpr (kCount == 4) {
    auto& [a, b, c, d] = object;
    all(a, b, c, d);
  } else if constexpr (kCount == 5) {
    auto& [a, b, c, d, e] = object;
    all(a, b, c, d, e);
  } else if constexpr (kCount == 6) {
    auto& [a, b, c, d, e, f] = object;
    all(a, b, c, d, e, f);
  } else if constexpr (kCount == 7) {
    auto& [a, b, c, d, e, f, g] = object;
    all(a, b, c, d, e, f, g);
  } else if constexpr (kCount == 8) {
    auto& [a, b, c, d, e, f, g, h] = object;
    all(a, b, c, d, e, f, g, h);
  } else if constexpr (kCount == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = object;
    all(a, b, c, d, e, f, g, h, i);
  } else if constexpr (kCount == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = object;
    all(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (kCount == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = object;
    all(a, b, c, d, e, f, g, h, i, j, k);
  } else {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = object;
    all(a, b, c, d, e, f, g, h, i, j, k, l);
  }
}

// ---- the kernels of a table ---------------------------------------------------------------

/// Calls visit.template operator()<&KernelTable::gemm>() and so on, for every kernel.
template <class Visit>
void for_each_kernel(Visit visit) {
  using T = KernelTable;
  const auto all = [&]<auto... kKernels>() {
    // A kernel that is missing below would be null.
    static_assert(sizeof(KernelTable) == 8 + sizeof...(kKernels) * sizeof(KernelEntry<Gemm>));
    (visit.template operator()<kKernels>(), ...);
  };
  all.template operator()<
      &T::gemm, &T::grouped_gemm, &T::grouped_gemm_weight, &T::attention_forward,
      &T::attention_merge, &T::attention_delta, &T::attention_backward, &T::attention_sinks,
      &T::attention_sinks_gradient, &T::norm_forward, &T::norm_backward_input,
      &T::norm_backward_weight, &T::activation_forward, &T::activation_backward, &T::rotary_table,
      &T::rotary, &T::copy_heads, &T::embedding_forward, &T::embedding_backward,
      &T::cross_entropy_maximum, &T::cross_entropy_sum, &T::cross_entropy_loss,
      &T::cross_entropy_forward, &T::cross_entropy_gradient, &T::add, &T::bias_add,
      &T::bias_gradient, &T::grouped_bias_gradient, &T::row_gate_forward, &T::row_gate_backward,
      &T::dropout_forward, &T::dropout_backward, &T::round_to_float8, &T::reduce, &T::cast,
      &T::fill, &T::total, &T::mean_squared_error_forward, &T::mean_squared_error_gradient,
      &T::gate_forward, &T::gate_load, &T::gate_auxiliary_loss, &T::gate_backward,
      &T::sort_by_expert, &T::gather_rows, &T::combine_rows, &T::combine_weight_gradient, &T::adamw,
      &T::sgd, &T::squared_norm, &T::clip_scale, &T::pack_bucket, &T::unpack_bucket>();
}

}  // namespace meshwright
