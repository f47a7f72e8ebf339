/// `*.pftrace`: the native timeline format, Perfetto's TrackEvent protobuf. Opens in
/// ui.perfetto.dev. Field numbers: github.com/google/perfetto, protos/perfetto/trace. Times
/// round-trip exactly: the picoseconds below Perfetto's nanoseconds are stored in annotations.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "core/timeline/timeline.hpp"

namespace meshwright {

std::string to_pftrace(const Timeline& timeline);
/// Inverse of to_pftrace(). Throws InputError with the byte offset if the bytes are not such a
/// trace; never reads out of bounds, and allocates memory only in proportion to the input.
/// `progress` is called now and then with the bytes that were read, and may throw to stop.
Timeline timeline_from_pftrace(std::string_view bytes, std::string_view where,
                               const std::function<void(std::size_t)>& progress = {});

inline constexpr std::size_t kPftracePiece = std::size_t{16} << 20;
/// The same for a regular file of at most kLargestTraceFile bytes, of which `piece` bytes, or one
/// packet, are in memory at a time.
Timeline read_pftrace(const std::string& path,
                      const std::function<void(std::size_t)>& progress = {},
                      std::size_t piece = kPftracePiece);

}  // namespace meshwright
