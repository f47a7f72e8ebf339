#include "cli/calibration/calibration_probes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace meshwright {
namespace {

using testing::UnorderedElementsAre;

// A calibration of some 20 seconds measures a dozen probes: they must span what follows.
TEST(GpuProbes, BeginWithEveryWidthAndModel) {
  std::set<std::int64_t> widths;
  std::set<ProbeKind> kinds;
  const std::vector<ProbeShape> probes = gpu_probes();
  ASSERT_GT(probes.size(), 8u);
  for (std::size_t i = 0; i < 8; ++i) {
    widths.insert(probes[i].hidden);
    kinds.insert(probes[i].kind);
    EXPECT_EQ(probes[i].dtype, Dtype::kBf16);
  }
  EXPECT_THAT(widths, UnorderedElementsAre(512, 1024, 2048));
  EXPECT_EQ(kinds.size(), 3u);
}

TEST(GpuProbes, AreDifferent) {
  std::set<std::string> names;
  for (const ProbeShape& probe : gpu_probes()) EXPECT_TRUE(names.insert(name_of(probe)).second);
}

}  // namespace
}  // namespace meshwright
