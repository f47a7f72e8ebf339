/// Files in and out. Inputs are untrusted: sizes are capped. Outputs appear whole or not at all.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace meshwright {

inline constexpr std::size_t kLargestTextFile = std::size_t{64} << 20;  ///< configs, plans
inline constexpr std::size_t kLargestTraceFile = std::size_t{4} << 30;  ///< timelines

/// Whole content; "-" is standard input. InputError if missing, a folder, or larger than `limit`.
std::string read_file(const std::string& path, std::size_t limit = kLargestTextFile);

/// Writes to a temporary name beside `path` and renames it; "-" is standard output.
/// RuntimeFailure with the path and the system's reason; then nothing is left behind.
void write_file(const std::string& path, std::string_view content);

}  // namespace meshwright
