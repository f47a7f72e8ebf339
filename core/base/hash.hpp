/// FNV-1a hashes (Fowler, Noll and Vo): the same on every platform.
#pragma once

#include <cstdint>
#include <string_view>

namespace meshwright {

inline constexpr std::uint64_t kFnv1aStart = 0xcbf29ce484222325U;

/// The hash of what `hash` is the hash of, followed by one byte or a larger word.
constexpr std::uint64_t fnv1a_next(std::uint64_t hash, std::uint64_t word) {
  return (hash ^ word) * 0x100000001b3U;
}
/// The same, followed by the bytes of a text.
constexpr std::uint64_t fnv1a(std::string_view text, std::uint64_t hash = kFnv1aStart) {
  for (const char c : text) hash = fnv1a_next(hash, static_cast<unsigned char>(c));
  return hash;
}

}  // namespace meshwright
