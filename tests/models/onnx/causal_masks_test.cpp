#include "models/onnx/causal_masks.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "core/formats/file.hpp"

namespace meshwright::onnx {
namespace {

std::string booleans(std::initializer_list<int> values) {
  std::string bytes;
  for (const int value : values) bytes += static_cast<char>(value);
  return bytes;
}

std::optional<bool> is_causal(std::string_view bytes, const Dimensions& dims) {
  return is_causal_mask(bytes, ElementType::kBool, dims);
}

TEST(CausalMasks, DifferAboveTheDiagonal) {
  EXPECT_EQ(is_causal(booleans({1, 0, 0, 1, 1, 0, 1, 1, 1}), {3, 3}), true);
  EXPECT_EQ(is_causal(booleans({0, 1, 1, 0, 0, 1, 0, 0, 0}), {3, 3}), true);  // what is hidden
  EXPECT_EQ(is_causal(booleans({1, 0, 0, 1, 1, 0, 0, 1, 1}), {3, 3}), true);  // a window of 2
  EXPECT_EQ(is_causal(booleans({1, 1, 1, 1, 1, 1, 1, 1, 1}), {3, 3}), false);
  EXPECT_EQ(is_causal(booleans({1, 0, 1, 1, 1, 0, 1, 1, 1}), {3, 3}), false);
}

TEST(CausalMasks, AreSoInEveryMatrix) {
  EXPECT_EQ(is_causal(booleans({1, 0, 1, 1, 1, 0, 1, 1}), {2, 1, 2, 2}), true);
  EXPECT_EQ(is_causal(booleans({1, 0, 1, 1, 1, 1, 1, 1}), {2, 1, 2, 2}), false);
  EXPECT_FALSE(is_causal(booleans({1, 0, 1, 1, 1, 1}), {2, 3}).has_value());
  EXPECT_FALSE(is_causal(booleans({1, 0, 1}), {2, 2}).has_value());
  EXPECT_FALSE(is_causal("", {0, 0}).has_value());
}

/// As added to scores. Position biases and kernels of convolutions are none.
TEST(CausalMasks, MayBeNumbers) {
  constexpr std::int64_t kPositions = 16;
  const auto numbers = [](float above, float below) {
    std::string bytes;
    for (int i = 0; i < kPositions * kPositions; ++i) {
      const float value = i % kPositions > i / kPositions ? above : below;
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    return bytes;
  };
  const Dimensions dims{1, kPositions, kPositions};
  EXPECT_EQ(is_causal_mask(numbers(-3.4e38F, 0), ElementType::kFloat, dims), true);
  EXPECT_EQ(is_causal_mask(numbers(-1e9F, 0.5F), ElementType::kFloat, dims), true);
  EXPECT_EQ(is_causal_mask(numbers(0.01F, 0), ElementType::kFloat, dims), false);
  EXPECT_EQ(is_causal_mask(numbers(-1e9F, -1e9F), ElementType::kFloat, dims), false);
  EXPECT_TRUE(may_be_mask(ElementType::kFloat, dims));
  EXPECT_FALSE(may_be_mask(ElementType::kFloat, {64, 64}));
  EXPECT_FALSE(may_be_mask(ElementType::kFloat, {64, 64, 7, 7}));
}

struct MaskFile : testing::Test {
  MaskFile() {
    std::string pattern = testing::TempDir() + "mask-XXXXXX";
    directory = ::mkdtemp(pattern.data());
    write_file(directory + "/model.data", booleans({9, 9, 1, 1, 1, 1, 1, 0, 1, 1}));
  }
  ~MaskFile() override { std::filesystem::remove_all(directory); }
  bool is_causal(const std::string& location, std::uint64_t offset) const {
    const TensorLiteral mask{.name = "mask",
                             .type = ElementType::kBool,
                             .dims = {2, 2},
                             .value = {},
                             .external = ExternalData{location, offset},
                             .is_causal_mask = {}};
    return StoredMasks(directory).is_causal(mask);
  }
  std::string directory;
};

TEST_F(MaskFile, IsReadAtItsOffset) {
  EXPECT_FALSE(is_causal("model.data", 2));
  EXPECT_TRUE(is_causal("model.data", 6));
}

/// What is missing counts as causal, and so does what may not be read.
TEST_F(MaskFile, IsReadFromTheDirectoryOfTheModelOnly) {
  EXPECT_TRUE(is_causal("other.data", 2));
  EXPECT_TRUE(is_causal("model.data", 7));  // too short
  std::filesystem::create_directory(directory + "/below");
  EXPECT_TRUE(is_causal("below/../model.data", 2));
  EXPECT_TRUE(is_causal(directory + "/model.data", 2));
  ASSERT_EQ(::mkfifo((directory + "/pipe").c_str(), 0600), 0);
  EXPECT_TRUE(is_causal("pipe", 0));  // would wait for ever
  EXPECT_TRUE(is_causal("model.data", std::uint64_t{1} << 63));
}

}  // namespace
}  // namespace meshwright::onnx
