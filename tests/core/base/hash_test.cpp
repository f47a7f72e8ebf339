#include "core/base/hash.hpp"

#include <gtest/gtest.h>

namespace meshwright {
namespace {

// 64-bit test vectors of draft-eastlake-fnv (appendix C).
TEST(Fnv1a, MatchesThePublishedVectors) {
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325U);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cU);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8U);
}

TEST(Fnv1a, ContinuesWhereAnEarlierHashEnded) {
  EXPECT_EQ(fnv1a("bar", fnv1a("foo")), fnv1a("foobar"));
  EXPECT_EQ(fnv1a_next(fnv1a(""), 'a'), fnv1a("a"));
}

}  // namespace
}  // namespace meshwright
