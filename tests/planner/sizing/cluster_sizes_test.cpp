#include "planner/sizing/cluster_sizes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace meshwright {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ClusterSizes, OfARangeArePowersOfTwoAndOfWholeNodes) {
  EXPECT_THAT(sizes_in({64, 1024}, 8), ElementsAre(64, 128, 256, 512, 1024));
  EXPECT_THAT(sizes_in({1, 20}, 8), ElementsAre(1, 2, 4, 8, 16));
  EXPECT_THAT(sizes_in({64, 300}, 72), ElementsAre(64, 72, 128, 144, 256, 288));
  EXPECT_THAT(sizes_in({65, 100}, 8), IsEmpty());
  EXPECT_THAT(sizes_in({1 << 30, 0x7fffffff}, 8), ElementsAre(1 << 30));  // no overflow
}

TEST(ClusterSizes, AllOfThemAreWholeNodesOrPowersOfTwoOfTheirDevices) {
  EXPECT_THAT(all_sizes(32, 8), ElementsAre(1, 2, 4, 8, 16, 24, 32));
  EXPECT_THAT(all_sizes(13, 6), ElementsAre(1, 2, 4, 6, 8, 12));
  EXPECT_THAT(all_sizes(3, 1), ElementsAre(1, 2, 3));
}

}  // namespace
}  // namespace meshwright
