/// Finds enumerators by their names.
#pragma once

#include <optional>
#include <string_view>

namespace meshwright {

/// The value from 0 to count - 1 whose name_of() is `name`.
template <class Value>
std::optional<Value> value_named(std::string_view name, int count) {
  for (int i = 0; i < count; ++i)
    if (name_of(static_cast<Value>(i)) == name) return static_cast<Value>(i);
  return std::nullopt;
}

}  // namespace meshwright
