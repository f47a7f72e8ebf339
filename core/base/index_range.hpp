/// Ranges of indices in texts: "4-7", or "4" for a single one.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/number_from_text.hpp"

namespace meshwright {

struct IndexRange {
  std::int32_t first = 0, last = 0;  ///< both included
};

inline std::string to_text(const IndexRange& range) {
  return range.first == range.last ? std::to_string(range.first)
                                   : fmt::format("{}-{}", range.first, range.last);
}

/// Removes a range and the ':' after it from the front of `rest`; empty if there is none.
inline std::optional<IndexRange> take_index_range(std::string_view& rest) {
  const auto take = [&rest](char c) {
    const bool has_it = rest.starts_with(c);
    if (has_it) rest.remove_prefix(1);
    return has_it;
  };
  const std::optional<std::int32_t> first = take_index(rest);
  const std::optional<std::int32_t> last = first && take('-') ? take_index(rest) : first;
  if (!last || *last < *first || !take(':')) return std::nullopt;
  return IndexRange{*first, *last};
}

}  // namespace meshwright
