#include "core/base/parse_quantity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/complaints.hpp"

namespace meshwright {
namespace {
using namespace literals;

template <class Parse>
std::string message_of(Parse parse, std::string_view text) {
  return complaints_of([&] { parse(text, "x.toml:3:10"); });
}

TEST(ParseQuantity, KeepsBinaryAndDecimalSizesApart) {
  EXPECT_EQ(parse_bytes("80 GiB", ""), Bytes(85'899'345'920));  // 80 * 2^30
  EXPECT_EQ(parse_bytes("80 GB", ""), Bytes(80'000'000'000));
  EXPECT_EQ(parse_bytes("512 MiB", ""), Bytes(536'870'912));  // 512 * 2^20
  EXPECT_EQ(parse_bytes("1.5 KiB", ""), Bytes(1536));
  EXPECT_EQ(parse_bytes("64B", ""), Bytes(64));
}

TEST(ParseQuantity, KeepsBitsAndBytesPerSecondApart) {
  EXPECT_EQ(parse_bandwidth("450 GB/s", ""), BytesPerSecond(450e9));
  EXPECT_EQ(parse_bandwidth("400 Gbit/s", ""), BytesPerSecond(50e9));  // 400e9 / 8
  EXPECT_EQ(parse_bandwidth("1 GiB/s", ""), BytesPerSecond(1073741824.0));
}

TEST(ParseQuantity, RoundsDecimalUnitsOnce) {
  // The nearest double to the written number, not a product of two rounded ones.
  EXPECT_EQ(parse_bandwidth("2.039 TB/s", ""), BytesPerSecond(2.039e12));
  EXPECT_EQ(parse_flop_rate("989.4 TFLOP/s", ""), FlopsPerSecond(989.4e12));
  EXPECT_EQ(parse_seconds("12.5 us", ""), Seconds(12.5e-6));
  EXPECT_EQ(parse_seconds("0.3 us", ""), Seconds(0.3e-6));
  EXPECT_EQ(parse_flop_rate("1 PFLOP/s", ""), FlopsPerSecond(1e15));
}

TEST(ParseQuantity, AsksForAUnitByName) {
  EXPECT_EQ(message_of(parse_bytes, "80"),
            "error: x.toml:3:10: missing unit in '80'\n  hint: write \"80 GiB\" or \"80 GB\"\n");
  EXPECT_EQ(message_of(parse_bandwidth, "450"),
            "error: x.toml:3:10: missing unit in '450'\n"
            "  hint: write \"450 GB/s\" or \"450 Gbit/s\"\n");
}

TEST(ParseQuantity, SuggestsTheUnitThatWasMeant) {
  const auto hint = [](auto parse, std::string_view text) {
    const std::string message = message_of(parse, text);
    return message.substr(message.find("hint: ") + 6);
  };
  EXPECT_EQ(hint(parse_bandwidth, "450 GB"), "did you mean 'GB/s'?\n");
  EXPECT_EQ(hint(parse_bandwidth, "400 Gbps"), "did you mean 'Gbit/s'?\n");
  EXPECT_EQ(hint(parse_bandwidth, "400 Gb/s"), "did you mean 'Gbit/s'?\n");
  EXPECT_THAT(hint(parse_flop_rate, "312 TFLOPS"), testing::StartsWith("did you mean 'TFLOP/s'"));
  EXPECT_EQ(hint(parse_seconds, "3 sec"), "expected one of: ps, ns, us, ms, s\n");
  EXPECT_THAT(hint(parse_bytes, "3 parsec"), testing::StartsWith("expected one of: B, kB, MB"));
}

TEST(ParseQuantity, RefusesWhatIsNotAPositiveNumberAndSaysTheValue) {
  EXPECT_THAT(message_of(parse_bytes, "0 GiB"), testing::HasSubstr("must be positive, got 0 GiB"));
  EXPECT_THAT(message_of(parse_bytes, "0.00 GiB"),
              testing::HasSubstr("must be positive, got 0.00 GiB"));
  EXPECT_THAT(message_of(parse_seconds, "-3 ms"),
              testing::HasSubstr("must be positive, got -3 ms"));
  for (const char* text : {"", " ", "nan s", "inf s", "GB", "+3 s", ".5 s", " 3 s", "\x01"})
    EXPECT_THAT(message_of(parse_seconds, text),
                testing::ContainsRegex("invalid value '.*': expected a time"))
        << text;
  for (const char* text : {"1e3 s", "3. s", "3 s ", "3 m s", "3,5 s", "0x10 s", "1_000 s"})
    EXPECT_THAT(message_of(parse_seconds, text), testing::HasSubstr("invalid unit '")) << text;
}

TEST(ParseQuantity, RefusesWhatIsOutOfRange) {
  EXPECT_THAT(message_of(parse_bytes, "9000000 TiB"), testing::HasSubstr("out of range"));
  EXPECT_THAT(message_of(parse_seconds, "9000000000 s"), testing::HasSubstr("out of range"));
  const std::string long_number(400, '9');
  EXPECT_THAT(message_of(parse_bandwidth, long_number + " GB/s"),
              testing::HasSubstr("out of range"));
  const std::string tiny = "0." + std::string(400, '0') + "1 s";
  EXPECT_THAT(message_of(parse_seconds, tiny), testing::HasSubstr("out of range"));
}

TEST(ParseQuantity, WantsWholeBytes) {
  // 79.1 * 2^30 = 84932978278.4
  EXPECT_THAT(message_of(parse_bytes, "79.1 GiB"),
              testing::AllOf(testing::HasSubstr("not a whole number of bytes"),
                             testing::HasSubstr("write \"84932978278 B\"")));
}

TEST(QuantityText, ShowsThreeDigitsInAFittingUnit) {
  EXPECT_EQ(to_text(Bytes(85'147'726'643)), "79.3 GiB");  // 79.3 * 2^30 = 85147726643.2
  EXPECT_EQ(to_text(80_GiB), "80 GiB");
  EXPECT_EQ(to_text(64_B), "64 B");
  EXPECT_EQ(to_text(Bytes(0)), "0 B");
  EXPECT_EQ(to_text(Bytes(-1'073'741'824)), "-1 GiB");
  EXPECT_EQ(to_text(Bytes(1010) * (1 << 20)), "0.986 GiB");  // 1010 / 1024, three digits
  EXPECT_EQ(to_text(450_GBps), "450 GB/s");
  EXPECT_EQ(to_text(312_TFLOPps), "312 TFLOP/s");
  EXPECT_EQ(to_text(Seconds(12.5e-6)), "12.5 us");
  EXPECT_EQ(to_text(Seconds(0)), "0 s");
  EXPECT_EQ(to_text(Seconds(86400)), "86400 s");
  EXPECT_EQ(to_text(Ticks(12'500'000)), "12.5 us");
}

TEST(QuantityText, NeverRoundsToAThousandOfASmallerUnit) {
  EXPECT_EQ(to_text(Seconds(999.4e-6)), "999 us");
  EXPECT_EQ(to_text(Seconds(999.6e-6)), "1 ms");
}

}  // namespace
}  // namespace meshwright
