#include "planner/sizing/pareto_front.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace meshwright {
namespace {

using testing::ElementsAre;

// The third is slower than the first on as many devices; the fourth is the cheapest.
TEST(ParetoFront, LeavesOutWhatIsBeatenInEverything) {
  const std::vector<Tradeoff> items{{Seconds(10), 8, Dollars(100)},
                                    {Seconds(5), 16, Dollars(110)},
                                    {Seconds(11), 8, Dollars(100)},
                                    {Seconds(20), 16, Dollars(90)}};
  EXPECT_THAT(pareto_front(items), ElementsAre(true, true, false, true));
}

TEST(ParetoFront, IgnoresCostsUnlessAllHaveOne) {
  const std::vector<Tradeoff> items{{Seconds(10), 8, Dollars(100)}, {Seconds(20), 8, std::nullopt}};
  EXPECT_THAT(pareto_front(items), ElementsAre(true, false));
}

TEST(ParetoFront, KeepsEqualItems) {
  const std::vector<Tradeoff> items{{Seconds(10), 8, {}}, {Seconds(10), 8, {}}};
  EXPECT_THAT(pareto_front(items), ElementsAre(true, true));
}

/// The definition, written apart: an item is on the front if for some weights it is not beaten,
/// that is, if every other item is worse somewhere or equal everywhere.
bool is_worse_somewhere_or_equal(const Tradeoff& other, const Tradeoff& item) {
  const bool worse =
      other.time > item.time || other.devices > item.devices || *other.cost > *item.cost;
  const bool equal =
      other.time == item.time && other.devices == item.devices && other.cost == item.cost;
  return worse || equal;
}

// Small ranges of values, so that ties are frequent.
TEST(ParetoFront, EqualsTheDefinitionOnRandomItems) {
  std::mt19937 random(1);
  const auto draw = [&](int most) {
    return static_cast<int>(random() % static_cast<unsigned>(most)) + 1;
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<Tradeoff> items;
    for (int n = draw(20); n > 0; --n)
      items.push_back({Seconds(draw(6)), draw(6), Dollars(draw(6))});
    const std::vector<bool> front = pareto_front(items);
    for (std::size_t i = 0; i < items.size(); ++i) {
      bool expected = true;
      for (const Tradeoff& other : items)
        expected = expected && is_worse_somewhere_or_equal(other, items[i]);
      EXPECT_EQ(front[i], expected) << "round " << round << ", item " << i;
    }
  }
}

}  // namespace
}  // namespace meshwright
