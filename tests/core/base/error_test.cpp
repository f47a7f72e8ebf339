#include "core/base/error.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace meshwright {
namespace {

TEST(Diagnostic, FormatsPlaceMessageAndHint) {
  EXPECT_EQ(format({.where = "a.toml:3:5", .what = "no unit in '80'", .hint = "write \"80 GiB\""}),
            "error: a.toml:3:5: no unit in '80'\n  hint: write \"80 GiB\"\n");
  EXPECT_EQ(format({.where = "--tp", .what = "must be positive", .hint = ""}),
            "error: --tp: must be positive\n");
}

TEST(NearestNames, AreOrderedByEditDistance) {
  const std::vector<std::string> names{"dgx-h100", "dgx-a100", "p4d.24xlarge"};
  EXPECT_THAT(nearest_names("dgx-a10", names), testing::ElementsAre("dgx-a100", "dgx-h100"));
  EXPECT_THAT(nearest_names("DGX-H100", names), testing::ElementsAre("dgx-h100", "dgx-a100"));
  EXPECT_THAT(nearest_names("tpu", names), testing::IsEmpty());
}

TEST(NearestNames, CountSwappedNeighborsAsOneEdit) {
  EXPECT_THAT(nearest_names("dxg-h100", std::vector<std::string>{"dgx-h100"}, 1),
              testing::ElementsAre("dgx-h100"));
}

TEST(NearestNames, IgnoreTheDashesOfFlags) {
  EXPECT_THAT(nearest_names("--ab", std::vector<std::string>{"--cd"}), testing::IsEmpty());
  EXPECT_THAT(nearest_names("schedul", std::vector<std::string>{"--schedule"}),
              testing::ElementsAre("--schedule"));
}

TEST(Enumeration, EndsWithAnd) {
  EXPECT_EQ(enumeration({}), "");
  EXPECT_EQ(enumeration(std::vector<std::string>{"a"}), "a");
  EXPECT_EQ(enumeration(std::vector<std::string>{"a", "b"}), "a and b");
  EXPECT_EQ(enumeration(std::vector<std::string>{"a", "b", "c"}), "a, b and c");
}

TEST(Suggest, ListsAllNamesWhenNothingIsNear) {
  const std::vector<std::string> names{"none", "full"};
  EXPECT_EQ(suggest("xyzzy-plugh", names), "expected one of: none, full");
  EXPECT_EQ(suggest("ful", names), "did you mean 'full'?");
}

}  // namespace
}  // namespace meshwright
