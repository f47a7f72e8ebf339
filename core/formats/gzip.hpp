/// Decompression of gzip files, such as the traces of PyTorch's profiler.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace meshwright {

bool is_gzip(std::string_view bytes);

/// All members of a gzip file. Throws InputError at `where` if it is invalid, truncated, or larger
/// than `limit` bytes when decompressed.
std::string decompress_gzip(std::string_view bytes, std::string_view where, std::size_t limit);

}  // namespace meshwright
