#include "planner/parallel/parallel_for.hpp"

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

TEST(ThreadTeam, RunsOneLoopAfterAnother) {
  for (const int threads : {1, 2, 5}) {
    ThreadTeam team(threads);
    std::vector<int> visits(20, 0);
    for (std::size_t count = 0; count <= visits.size(); ++count)
      team.for_each(count, [&](std::size_t i) { ++visits[i]; });
    for (std::size_t i = 0; i < visits.size(); ++i)
      EXPECT_EQ(visits[i], static_cast<int>(visits.size() - i));
  }
}

TEST(ThreadTeam, GoesOnAfterALoopThatThrew) {
  ThreadTeam team(3);
  EXPECT_THROW(team.for_each(9, [](std::size_t) { throw std::runtime_error("lost"); }),
               std::runtime_error);
  std::vector<int> visits(9, 0);
  team.for_each(9, [&](std::size_t i) { ++visits[i]; });
  EXPECT_EQ(visits, std::vector<int>(9, 1));
}

}  // namespace
}  // namespace meshwright
