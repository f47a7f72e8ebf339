/// Event files of TensorBoard (events.out.tfevents.*) with scalars.
///
/// A TFRecord file (tensorflow/core/lib/io/record_writer.h): for each record its length (uint64),
/// the masked CRC32C of the length, the record, and the masked CRC32C of the record. A record is an
/// Event message (tensorflow/core/util/event.proto).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace meshwright {

struct ScalarEvent {
  double wall_time_s = 0;  ///< since 1970
  std::int64_t step = 0;
  std::vector<std::pair<std::string, float>> scalars;  ///< by tag
};

/// The first record of every file.
std::string tfevents_header(double wall_time_s);
/// After it in a run that resumes: TensorBoard then drops what other files of the folder have from
/// `first_step` on.
std::string tfevents_restart(double wall_time_s, std::int64_t first_step);
std::string tfevents_record(const ScalarEvent& event);

/// CRC32C (Castagnoli), rotated and shifted, so that a checksum of data with checksums is not weak.
std::uint32_t masked_crc32c(std::string_view bytes);

}  // namespace meshwright
