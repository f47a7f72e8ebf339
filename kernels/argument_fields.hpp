/// Visitor over all fields of a struct of arguments. Internal to this folder and its tests.
#pragma once

#include <cstddef>

namespace meshwright {

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

}  // namespace meshwright
