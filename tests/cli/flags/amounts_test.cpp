#include "cli/flags/amounts.hpp"

#include <gtest/gtest.h>

#include "cli/flags/usage_error.hpp"

namespace meshwright {
namespace {

TEST(Amounts, TokensHaveTheSuffixesOfPapers) {
  EXPECT_EQ(parse_token_count("--tokens", "15T"), 15'000'000'000'000);
  EXPECT_EQ(parse_token_count("--tokens", "300B"), 300'000'000'000);
  EXPECT_EQ(parse_token_count("--tokens", "1.5 M"), 1'500'000);
  EXPECT_EQ(parse_token_count("--tokens", "1e12"), 1'000'000'000'000);
  EXPECT_EQ(parse_token_count("--tokens", "20k"), 20'000);
  EXPECT_EQ(parse_token_count("--tokens", "7"), 7);
  EXPECT_EQ(parse_token_count("--tokens", "1000000T"), 1'000'000'000'000'000'000);
}

TEST(Amounts, TokensOutOfRangeAreRefused) {
  for (const char* text :
       {"", "T", "15X", "15TT", "-1", "0", "0.5", "1e30T", "1e400", "nan", "inf", "0x10", "15,000"})
    EXPECT_THROW(parse_token_count("--tokens", text), UsageError) << text;
}

// 365.25 days of 86,400 s.
TEST(Amounts, LongTimesHaveUnits) {
  EXPECT_EQ(parse_long_time("--deadline", "90 s"), Seconds(90));
  EXPECT_EQ(parse_long_time("--deadline", "36h"), Seconds(129'600));
  EXPECT_EQ(parse_long_time("--deadline", "30d"), Seconds(2'592'000));
  EXPECT_EQ(parse_long_time("--deadline", "2 years"), Seconds(63'115'200));
  for (const char* text : {"", "30", "d", "30 weeks", "-1d", "1e300y", "nan s"})
    EXPECT_THROW(parse_long_time("--deadline", text), UsageError) << text;
  EXPECT_THROW(parse_positive_time("--deadline", "0d"), UsageError);
}

TEST(Amounts, PricesArePlainPositiveNumbers) {
  EXPECT_EQ(parse_device_price("--price", "2.5"), DollarsPerHour(2.5));
  for (const char* text : {"", "0", "-1", "2.5 EUR", "1e7", "nan"})
    EXPECT_THROW(parse_device_price("--price", text), UsageError) << text;
}

}  // namespace
}  // namespace meshwright
