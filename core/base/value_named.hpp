/// Tables with one entry per enumerator, and enumerators by name.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "core/base/check.hpp"

namespace meshwright {

/// The entry of `value` in a table whose entries are in the order of the enumeration.
template <class Entry, std::size_t count, class Value>
constexpr const Entry& entry_of(const std::array<Entry, count>& table, Value value) {
  const auto index = static_cast<std::size_t>(value);
  MW_CHECK(index < count);
  return table[index];
}

/// The value from 0 to count - 1 whose name_of() is `name`.
template <class Value>
std::optional<Value> value_named(std::string_view name, int count) {
  for (int i = 0; i < count; ++i)
    if (name_of(static_cast<Value>(i)) == name) return static_cast<Value>(i);
  return std::nullopt;
}

}  // namespace meshwright
