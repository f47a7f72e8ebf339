#include "models/onnx/causal_masks.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "core/formats/file.hpp"

namespace meshwright::onnx {
namespace {

std::string bytes_of(std::initializer_list<int> booleans) {
  std::string bytes;
  for (const int value : booleans) bytes += static_cast<char>(value);
  return bytes;
}

TEST(CausalMasks, DifferAboveTheDiagonal) {
  EXPECT_EQ(is_causal_mask(bytes_of({1, 0, 0, 1, 1, 0, 1, 1, 1}), {3, 3}), true);
  EXPECT_EQ(is_causal_mask(bytes_of({0, 1, 1, 0, 0, 1, 0, 0, 0}), {3, 3}), true);  // what is hidden
  EXPECT_EQ(is_causal_mask(bytes_of({1, 0, 0, 1, 1, 0, 0, 1, 1}), {3, 3}), true);  // a window of 2
  EXPECT_EQ(is_causal_mask(bytes_of({1, 1, 1, 1, 1, 1, 1, 1, 1}), {3, 3}), false);
  EXPECT_EQ(is_causal_mask(bytes_of({1, 0, 1, 1, 1, 0, 1, 1, 1}), {3, 3}), false);
}

TEST(CausalMasks, AreSoInEveryMatrix) {
  EXPECT_EQ(is_causal_mask(bytes_of({1, 0, 1, 1, 1, 0, 1, 1}), {2, 1, 2, 2}), true);
  EXPECT_EQ(is_causal_mask(bytes_of({1, 0, 1, 1, 1, 1, 1, 1}), {2, 1, 2, 2}), false);
  EXPECT_FALSE(is_causal_mask(bytes_of({1, 0, 1, 1, 1, 1}), {2, 3}).has_value());
  EXPECT_FALSE(is_causal_mask(bytes_of({1, 0, 1}), {2, 2}).has_value());
  EXPECT_FALSE(is_causal_mask("", {0, 0}).has_value());
}

struct MaskFile : testing::Test {
  MaskFile() {
    std::string pattern = testing::TempDir() + "mask-XXXXXX";
    directory = ::mkdtemp(pattern.data());
    write_file(directory + "/model.data", bytes_of({9, 9, 1, 1, 1, 1, 1, 0, 1, 1}));
  }
  ~MaskFile() override { std::filesystem::remove_all(directory); }
  bool is_causal(const std::string& location, std::uint64_t offset) const {
    const TensorLiteral mask{.name = "mask",
                             .type = ElementType::kBool,
                             .dims = {2, 2},
                             .value = {},
                             .external = ExternalData{location, offset},
                             .is_causal_mask = {}};
    return is_causal_mask(mask, directory);
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
}

}  // namespace
}  // namespace meshwright::onnx
