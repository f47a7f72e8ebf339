#include "planner/sizing/pareto_front.hpp"

#include <algorithm>

namespace meshwright {

std::vector<bool> pareto_front(std::span<const Tradeoff> items) {
  const bool compares_cost =
      std::ranges::all_of(items, [](const Tradeoff& item) { return item.cost.has_value(); });
  const auto dominates = [compares_cost](const Tradeoff& a, const Tradeoff& b) {
    if (a.time > b.time || a.devices > b.devices || (compares_cost && *a.cost > *b.cost))
      return false;
    return a.time < b.time || a.devices < b.devices || (compares_cost && *a.cost < *b.cost);
  };
  std::vector<bool> is_on_front;
  for (const Tradeoff& item : items)
    is_on_front.push_back(
        std::ranges::none_of(items, [&](const Tradeoff& other) { return dominates(other, item); }));
  return is_on_front;
}

}  // namespace meshwright
