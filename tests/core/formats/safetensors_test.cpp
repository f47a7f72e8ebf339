/// Round trips of named arrays; rejection of invalid files.
#include "core/formats/safetensors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/complaints.hpp"

namespace meshwright {
namespace {

/// The header, preceded by its little-endian length.
std::string with_header(const std::string& header, const std::string& data = "") {
  std::string content;
  for (int i = 0; i < 8; ++i) content += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return content + header + data;
}

std::string refusal_of(const std::string& content) {
  const auto found = diagnostics_of([&] { tensors_from_safetensors(content, "x"); });
  return found.empty() ? "accepted" : found.front().what;
}

TEST(Safetensors, GiveBackWhatWasWritten) {
  const TensorFile file{
      .metadata = {{"step", "3"}},
      .tensors = {{"b", {2, 3}, {1, 2, 3, 4, 5, 6}}, {"a", {}, {-0.5F}}, {"empty", {0, 4}, {}}}};
  EXPECT_EQ(tensors_from_safetensors(to_safetensors(file), "x"), file);
}

/// 1.0F is 0x3f800000. The header in the format's own example is padded with spaces.
TEST(Safetensors, ReadWhatOthersWrite) {
  const TensorFile file = tensors_from_safetensors(
      with_header(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}   )",
                  std::string("\0\0\x80\x3f", 4)),
      "x");
  ASSERT_EQ(file.tensors.size(), 1U);
  EXPECT_THAT(file.tensors[0].values, testing::ElementsAre(1.0F));
}

TEST(Safetensors, BeginTheDataAtAMultipleOfEightBytes) {
  const std::string content = to_safetensors({.metadata = {}, .tensors = {{"w", {1}, {1}}}});
  EXPECT_EQ((content.size() - 4) % 8, 0U);
}

// binary16 0x3E00 = 1.5, 0x8001 = -2^-24, 0x7C00 infinity; bf16 0x3FC0 = 1.5.
TEST(Safetensors, ReadSixteenBitsAsFloat) {
  const TensorFile half = tensors_from_safetensors(
      with_header(R"({"w":{"dtype":"F16","shape":[3],"data_offsets":[0,6]}})",
                  std::string("\x00\x3E\x01\x80\x00\x7C", 6)),
      "x");
  EXPECT_EQ(half.tensors[0].values, (std::vector<float>{1.5F, -0x1p-24F, INFINITY}));
  const TensorFile brain = tensors_from_safetensors(
      with_header(R"({"w":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}})",
                  std::string("\xC0\x3F", 2)),
      "x");
  EXPECT_EQ(brain.tensors[0].values, std::vector<float>{1.5F});
}

TEST(Safetensors, RefuseWhatIsNone) {
  const std::string four(4, '\0');
  EXPECT_THAT(refusal_of(""), testing::HasSubstr("only 0 bytes long"));
  EXPECT_THAT(refusal_of(std::string(8, '\xff')), testing::HasSubstr("in a file of 8 bytes"));
  EXPECT_THAT(refusal_of(with_header("[]")),
              testing::HasSubstr("invalid header: expected an object, got an array"));
  EXPECT_THAT(refusal_of(with_header(R"({"w":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}})")),
              testing::HasSubstr("\"F64\""));
  const auto entry = [&](const std::string& shape, const std::string& offsets) {
    return refusal_of(with_header(
        R"({"w":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}", four));
  };
  EXPECT_EQ(entry("[1]", "[0,4]"), "accepted");
  EXPECT_THAT(entry("[2]", "[0,4]"), testing::HasSubstr("does not match shape"));
  EXPECT_THAT(entry("[1]", "[4,0]"), testing::HasSubstr("does not match shape"));
  EXPECT_THAT(entry("[1]", "[0]"), testing::HasSubstr("does not match shape"));
  EXPECT_THAT(entry("[1]", "[4,8]"), testing::HasSubstr("begins at 4"));
  EXPECT_THAT(entry("[0]", "[0,0]"), testing::HasSubstr("expected 0 bytes of tensors"));
  // 2^33 times 2^33 elements overflow 64 bits.
  EXPECT_THAT(entry("[8589934592,8589934592]", "[0,4]"),
              testing::HasSubstr("does not match shape"));
}

TEST(Safetensors, RefuseOverlaps) {
  EXPECT_THAT(refusal_of(with_header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                                     R"("b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                                     std::string(8, '\0'))),
              testing::HasSubstr("begins at 0"));
}

}  // namespace
}  // namespace meshwright
