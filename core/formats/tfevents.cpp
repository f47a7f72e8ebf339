#include "core/formats/tfevents.hpp"

#include <boost/crc.hpp>
#include <protozero/pbf_writer.hpp>

namespace meshwright {
namespace {

using protozero::pbf_writer;

// Fields of tensorflow/core/util/event.proto and tensorflow/core/framework/summary.proto.
namespace event {
constexpr std::uint32_t kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
}
namespace summary {
constexpr std::uint32_t kValue = 1, kTag = 1, kSimpleValue = 2;
}
namespace session_log {
constexpr std::uint32_t kStatus = 1;
constexpr std::int32_t kStart = 1;
}  // namespace session_log

template <class Number>
void append_little_endian(std::string& bytes, Number number) {
  for (std::size_t b = 0; b < sizeof(number); ++b)
    bytes += static_cast<char>(static_cast<unsigned char>(number >> (8 * b)));
}

std::string framed(const std::string& record) {
  std::string bytes;
  append_little_endian(bytes, std::uint64_t{record.size()});
  append_little_endian(bytes, masked_crc32c(bytes));
  bytes += record;
  append_little_endian(bytes, masked_crc32c(record));
  return bytes;
}

}  // namespace

std::uint32_t masked_crc32c(std::string_view bytes) {
  constexpr std::uint32_t kCastagnoli = 0x1EDC6F41, kOnes = 0xFFFFFFFF, kMask = 0xA282EAD8;
  boost::crc_optimal<32, kCastagnoli, kOnes, kOnes, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  const std::uint32_t sum = crc.checksum();
  return ((sum >> 15) | (sum << 17)) + kMask;
}

std::string tfevents_header(double wall_time_s) {
  std::string record;
  pbf_writer writer(record);
  writer.add_double(event::kWallTime, wall_time_s);
  writer.add_string(event::kFileVersion, "brain.Event:2");
  return framed(record);
}

std::string tfevents_restart(double wall_time_s, std::int64_t first_step) {
  std::string record;
  pbf_writer writer(record);
  writer.add_double(event::kWallTime, wall_time_s);
  writer.add_int64(event::kStep, first_step);
  pbf_writer(writer, event::kSessionLog).add_enum(session_log::kStatus, session_log::kStart);
  return framed(record);
}

std::string tfevents_record(const ScalarEvent& scalars) {
  std::string record;
  pbf_writer writer(record);
  writer.add_double(event::kWallTime, scalars.wall_time_s);
  writer.add_int64(event::kStep, scalars.step);
  {
    pbf_writer values(writer, event::kSummary);
    for (const auto& [tag, number] : scalars.scalars) {
      pbf_writer value(values, summary::kValue);
      value.add_string(summary::kTag, tag);
      value.add_float(summary::kSimpleValue, number);
    }
  }
  return framed(record);
}

}  // namespace meshwright
