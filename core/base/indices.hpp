/// 32-bit indices: half the memory of std::size_t.
#pragma once

#include <cstddef>
#include <cstdint>

namespace meshwright {

constexpr std::size_t to_index(std::int32_t index) { return static_cast<std::size_t>(index); }

}  // namespace meshwright
