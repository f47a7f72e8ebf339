#include "core/base/units.hpp"

#include <gtest/gtest.h>

#include "core/base/error.hpp"

namespace meshwright {
namespace {
using namespace literals;

TEST(Units, BytesOverBandwidthIsTime) {
  // 50 GB at 50 GB/s take one second; links are decimal.
  EXPECT_EQ(Bytes(50'000'000'000) / 50_GBps, Seconds(1.0));
}

TEST(Units, CountsDivideUp) {
  EXPECT_EQ(divide_up(8, 4), 2);
  EXPECT_EQ(divide_up(9, 4), 3);
  EXPECT_EQ(divide_up(0, 4), 0);
  EXPECT_EQ(divide_up(std::int64_t{1} << 40, 3), 366'503'875'926);  // 2^40 = 3 x 366503875925 + 1
}

TEST(Units, MemorySizesAreBinary) { EXPECT_EQ(80_GiB, Bytes(85'899'345'920)); }

TEST(Units, TicksRoundUpSoThatNoWorkIsFree) {
  EXPECT_EQ(to_ticks(Seconds(1e-12)), Ticks(1));
  EXPECT_EQ(to_ticks(Seconds(0.4e-12)), Ticks(1));
  EXPECT_EQ(to_ticks(Seconds(0.0)), Ticks(0));
  EXPECT_EQ(to_ticks(Seconds(1.0)), Ticks(kTicksPerSecond));
}

TEST(Units, NegativeTimeIsABugOfTheCaller) {
  EXPECT_THROW(to_ticks(Seconds(-1e-9)), InternalError);
}

TEST(Units, NanosecondsRoundToNearest) {
  EXPECT_EQ(to_nanoseconds(Ticks(1499)), 1);
  EXPECT_EQ(to_nanoseconds(Ticks(1500)), 2);
}

}  // namespace
}  // namespace meshwright
