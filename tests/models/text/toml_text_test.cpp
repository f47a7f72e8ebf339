#include "models/text/toml_text.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/base/parse_quantity.hpp"

namespace meshwright {
namespace {

std::string unquoted(const std::string& text) { return text.substr(1, text.size() - 2); }

TEST(TomlText, WritesQuantitiesInCustomaryUnits) {
  EXPECT_EQ(text_of(Seconds(2.021e-6)), "\"2.021 us\"");
  EXPECT_EQ(text_of(Seconds(0.5)), "\"500000 us\"");
  EXPECT_EQ(text_of(Seconds(3e-10)), "\"0.0003 us\"");
  EXPECT_EQ(text_of(Seconds()), "\"0 us\"");
  EXPECT_EQ(text_of(BytesPerSecond(4.8e12)), "\"4800 GB/s\"");
  EXPECT_EQ(text_of(FlopsPerSecond(494.5e12)), "\"494.5 TFLOP/s\"");
}

// The first was measured on a GPU: times 1e6 no decimal number of 16 digits is it.
TEST(TomlText, ReadsBackExactly) {
  std::mt19937_64 numbers(1);
  std::uniform_real_distribution<double> exponents(-9, 3);
  for (int i = 0; i < 10'000; ++i) {
    const double value = i == 0 ? 6.0479999519884585e-06 : std::pow(10.0, exponents(numbers));
    EXPECT_EQ(parse_seconds(unquoted(text_of(Seconds(value))), "").value, value);
    const double rate = 1e12 * value;
    EXPECT_EQ(parse_bandwidth(unquoted(text_of(BytesPerSecond(rate))), "").value, rate);
  }
}

}  // namespace
}  // namespace meshwright
