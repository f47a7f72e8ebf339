#include "executor/ranks/token_text.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "core/base/error.hpp"

namespace meshwright {
namespace {

constexpr std::uint32_t kVocabulary = 70'000;

TokenFile file_of(std::span<const std::uint8_t> bytes, TokenType type) {
  return TokenFile({.path = "tokens.bin",
                    .mapping = {},
                    .bytes = std::as_bytes(bytes),
                    .type = type,
                    .vocabulary = kVocabulary});
}

// 0x0102 = 258; 0x00010000 = 65536.
TEST(TokenText, ReadsWordsThenFilesOfBothTypes) {
  constexpr std::array<std::uint8_t, 4> kNarrow{2, 1, 7, 0};
  constexpr std::array<std::uint8_t, 8> kWide{0, 0, 1, 0, 9, 0, 0, 0};
  TokenText text{.words = {5}, .files = {}, .shuffle_seed = {}};
  text.files.push_back(file_of(kNarrow, TokenType::kUint16));
  text.files.push_back(file_of(kWide, TokenType::kUint32));
  ASSERT_EQ(text.size(), 5);
  std::vector<std::int32_t> all;
  for (std::int64_t i = 0; i < text.size(); ++i) all.push_back(text.at(i));
  EXPECT_EQ(all, (std::vector<std::int32_t>{5, 258, 7, 65536, 9}));
}

TEST(TokenText, NamesATokenOutsideOfTheVocabulary) {
  constexpr std::array<std::uint8_t, 8> kWide{0, 0, 0, 0, 0, 0, 2, 0};  // 131072
  const TokenFile file = file_of(kWide, TokenType::kUint32);
  try {
    static_cast<void>(file.at(1));
    FAIL();
  } catch (const RuntimeFailure& failure) {
    EXPECT_EQ(failure.diagnostic().where, "tokens.bin");
    EXPECT_EQ(failure.diagnostic().what,
              "token ID 131072 at index 1 is out of range for a vocabulary of 70000");
  }
}

// 10 tokens in sequences of 4: the third starts at 8, the fourth at 12 = 2 after the end.
TEST(TokenText, WrapsAroundUnlessShuffled) {
  TokenText text{.words = std::vector<std::int32_t>(10), .files = {}, .shuffle_seed = {}};
  EXPECT_EQ(text.start_of(2, 4), 8);
  EXPECT_EQ(text.start_of(3, 4), 2);
}

// 101 tokens hold 25 whole sequences of 4 with the token after each.
TEST(TokenText, VisitsEverySequenceOncePerEpochIfShuffled) {
  TokenText text{.words = std::vector<std::int32_t>(101), .files = {}, .shuffle_seed = 3};
  std::set<std::vector<std::int64_t>> orders;
  for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
    std::vector<std::int64_t> starts;
    for (std::int64_t i = 0; i < 25; ++i) starts.push_back(text.start_of(epoch * 25 + i, 4));
    orders.insert(starts);
    std::sort(starts.begin(), starts.end());
    for (std::int64_t i = 0; i < 25; ++i) EXPECT_EQ(starts[static_cast<std::size_t>(i)], 4 * i);
  }
  EXPECT_EQ(orders.size(), 4u);
  const std::int64_t before = text.start_of(7, 4);
  EXPECT_EQ(text.start_of(7, 4), before);
}

TEST(Shuffle, IsAPermutationOfEverySize) {
  for (std::int64_t count = 1; count <= 300; ++count)
    for (const std::uint64_t seed : {0, 1, 2}) {
      std::set<std::int64_t> found;
      for (std::int64_t i = 0; i < count; ++i) found.insert(shuffled(i, count, seed));
      EXPECT_EQ(std::ssize(found), count);
      EXPECT_GE(*found.begin(), 0);
      EXPECT_LT(*found.rbegin(), count);
    }
}

/// Over many seeds index 0 goes everywhere about equally often: 100 times each on average, with a
/// deviation of 10, so that 50 is five deviations away.
TEST(Shuffle, GoesEverywhere) {
  std::vector<int> times(10);
  for (std::uint64_t seed = 0; seed < 1000; ++seed)
    ++times[static_cast<std::size_t>(shuffled(0, 10, seed))];
  for (const int count : times) EXPECT_NEAR(count, 100, 50);
}

}  // namespace
}  // namespace meshwright
