/// Event files of TensorBoard, read back by a decoder of their layout.
#include "core/formats/tfevents.hpp"

#include <gmock/gmock.h>

#include <cstring>
#include <map>
#include <protozero/pbf_reader.hpp>
#include <stdexcept>

namespace meshwright {
namespace {

// Of RFC 3720, appendix B.4: the CRC32C of 32 zeros is 8a9136aa and of 32 ones 62a8ab43. Masked:
// (crc >> 15 | crc << 17) + a282ead8, computed by hand for the first:
// 8a9136aa >> 15 = 00011522, 8a9136aa << 17 = 6d540000, or = 6d551522, sum = 0fd7fffa (mod 2^32).
TEST(TensorBoard, MasksTheChecksumsOfRfc3720) {
  constexpr std::uint32_t kMask = 0xA282EAD8, kOfOnes = 0x62A8AB43;
  EXPECT_EQ(masked_crc32c(std::string(32, '\0')), 0x0FD7FFFAU);
  EXPECT_EQ(masked_crc32c(std::string(32, '\xff')), ((kOfOnes >> 15) | (kOfOnes << 17)) + kMask);
}

template <class Number>
Number take(std::string_view& bytes) {
  Number number = 0;
  if (bytes.size() < sizeof(number)) throw std::runtime_error("truncated");
  std::memcpy(&number, bytes.data(), sizeof(number));
  bytes.remove_prefix(sizeof(number));
  return number;
}

/// The records of a file, whose checksums must be right.
std::vector<std::string> records_of(std::string_view bytes) {
  std::vector<std::string> records;
  while (!bytes.empty()) {
    const std::string_view length_bytes = bytes.substr(0, sizeof(std::uint64_t));
    const auto length = take<std::uint64_t>(bytes);
    EXPECT_EQ(take<std::uint32_t>(bytes), masked_crc32c(length_bytes));
    records.emplace_back(bytes.substr(0, length));
    bytes.remove_prefix(length);
    EXPECT_EQ(take<std::uint32_t>(bytes), masked_crc32c(records.back()));
  }
  return records;
}

TEST(TensorBoard, ReadsBackScalars) {
  const std::string file = tfevents_header(1.5) + tfevents_restart(2, 6) +
                           tfevents_record({2.5, 7, {{"loss/train", 3.25F}, {"mfu", 0.5F}}});
  const std::vector<std::string> records = records_of(file);
  ASSERT_EQ(records.size(), 3u);

  protozero::pbf_reader header(records[0]);
  ASSERT_TRUE(header.next(1));
  EXPECT_EQ(header.get_double(), 1.5);
  ASSERT_TRUE(header.next(3));
  EXPECT_EQ(header.get_string(), "brain.Event:2");

  protozero::pbf_reader restart(records[1]);
  ASSERT_TRUE(restart.next(2));
  EXPECT_EQ(restart.get_int64(), 6);
  ASSERT_TRUE(restart.next(7));
  protozero::pbf_reader session = restart.get_message();
  ASSERT_TRUE(session.next(1));
  EXPECT_EQ(session.get_enum(), 1);

  protozero::pbf_reader event(records[2]);
  ASSERT_TRUE(event.next(2));
  EXPECT_EQ(event.get_int64(), 7);
  ASSERT_TRUE(event.next(5));
  std::map<std::string, float> scalars;
  for (protozero::pbf_reader summary = event.get_message(); summary.next(1);) {
    protozero::pbf_reader value = summary.get_message();
    ASSERT_TRUE(value.next(1));
    const std::string tag = value.get_string();
    ASSERT_TRUE(value.next(2));
    scalars[tag] = value.get_float();
  }
  EXPECT_THAT(scalars,
              testing::ElementsAre(testing::Pair("loss/train", 3.25F), testing::Pair("mfu", 0.5F)));
}

}  // namespace
}  // namespace meshwright
