#include "planner/search/parallel_for.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace meshwright {
namespace {

TEST(ParallelFor, VisitsEveryItemOnce) {
  for (const int threads : {1, 2, 3, 100}) {
    std::vector<int> visits(57, 0);
    parallel_for(visits.size(), threads, [&](std::size_t i) { ++visits[i]; });
    EXPECT_EQ(visits, std::vector<int>(57, 1));
  }
  parallel_for(0, 2, [](std::size_t) { FAIL(); });
}

TEST(ParallelFor, ThrowsWhatAnItemThrew) {
  const auto fail_at_7 = [](std::size_t i) {
    if (i == 7) throw std::runtime_error("seven");
  };
  for (const int threads : {1, 3})
    EXPECT_THROW(parallel_for(20, threads, fail_at_7), std::runtime_error);
}

}  // namespace
}  // namespace meshwright
