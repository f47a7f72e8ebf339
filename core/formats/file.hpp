/// File input and output. Inputs are untrusted: sizes are capped. Outputs are written atomically.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>

namespace meshwright {

inline constexpr std::size_t kLargestTextFile = std::size_t{64} << 20;  ///< configs, plans
inline constexpr std::size_t kLargestTraceFile = std::size_t{4} << 30;  ///< timelines
/// Ranks of a plan or calibration: far beyond real clusters.
inline constexpr std::int64_t kMostRanksInFile = std::int64_t{1} << 24;

/// Returns the whole content; "-" is standard input. Throws InputError if the file is missing, is a
/// directory, or is larger than `limit` bytes.
std::string read_file(const std::string& path, std::size_t limit = kLargestTextFile);

/// Bytes [offset, offset + size) of a file, fewer at its end. Throws InputError if the file cannot
/// be read.
std::string read_part(const std::string& path, std::uint64_t offset, std::size_t size);
/// Size of a file in bytes. Throws InputError if `path` is not a regular file, or is larger than
/// `limit` bytes.
std::uint64_t size_of_file(const std::string& path,
                           std::uint64_t limit = std::numeric_limits<std::uint64_t>::max());

/// Thrown if the program that reads standard output has ended.
class BrokenPipe : public std::runtime_error {
 public:
  BrokenPipe() : std::runtime_error("broken pipe") {}
};

/// Writes to a temporary file in the same directory and renames it to `path`; "-" is standard
/// output. Throws RuntimeFailure with the system's reason, or BrokenPipe; no temporary file is left
/// behind.
void write_file(const std::string& path, std::string_view content);

/// Removes the temporary file of a write_file() that is running, if it has a name. For signal
/// handlers that end the program.
void remove_unfinished_file();

}  // namespace meshwright
