#include "planner/sharding/least_memory.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>

#include "core/base/indices.hpp"

namespace meshwright {
namespace {

double least_of(std::span<const double> usages, std::span<const std::int32_t> allowed) {
  double least = std::numeric_limits<double>::infinity();
  for (const std::int32_t k : allowed) least = std::min(least, usages[to_index(k)]);
  return least;
}

}  // namespace

LeastMemory::LeastMemory(std::span<const double> left) : times_(left.size()) {
  // Differences between times until finish(), with a last one at the end.
  std::vector<double>& over = over_.emplace_back(times_ + 1, 0);
  for (std::size_t t = 0; t < times_; ++t) over[t] = (t == 0 ? 0 : left[t - 1]) - left[t];
}

void LeastMemory::add(const MemoryChanges& changes, std::span<const std::int32_t> allowed) {
  for_each_piece(changes, times_,
                 [&](std::size_t first, std::size_t last, std::span<const double> usages) {
                   const double least = least_of(usages, allowed);
                   over_[0][first] += least;
                   over_[0][last] -= least;
                 });
}

bool LeastMemory::finish() {
  std::partial_sum(over_[0].begin(), over_[0].end(), over_[0].begin());
  over_[0].resize(times_);
  for (std::size_t size = 1; 2 * size <= times_; size *= 2) {
    const std::vector<double>& half = over_.back();
    std::vector<double> whole(times_ - 2 * size + 1);
    for (std::size_t t = 0; t < whole.size(); ++t) whole[t] = std::max(half[t], half[t + size]);
    over_.push_back(std::move(whole));
  }
  return times_ == 0 || std::ranges::max(over_[0]) <= 0;
}

double LeastMemory::most(std::size_t first, std::size_t last) const {
  const auto level = static_cast<std::size_t>(std::bit_width((last - first) / 2));
  const std::vector<double>& over = over_[level];
  return std::max(over[first], over[last - (std::size_t{1} << level)]);
}

std::vector<std::int32_t> LeastMemory::exceeding(const MemoryChanges& changes,
                                                 std::span<const std::int32_t> allowed) const {
  std::vector<bool> exceeds(allowed.size(), false);
  for_each_piece(changes, times_,
                 [&](std::size_t first, std::size_t last, std::span<const double> usages) {
                   const double room = least_of(usages, allowed) - most(first, last);
                   for (std::size_t k = 0; k < exceeds.size(); ++k)
                     if (usages[to_index(allowed[k])] > room) exceeds[k] = true;
                 });
  std::vector<std::int32_t> strategies;
  for (std::size_t k = 0; k < allowed.size(); ++k)
    if (exceeds[k]) strategies.push_back(allowed[k]);
  return strategies;
}

}  // namespace meshwright
