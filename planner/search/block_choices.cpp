#include "planner/search/block_choices.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>

namespace meshwright {
namespace {

/// From one choice to another one that takes less time and holds more.
struct Exchange {
  std::size_t group = 0, from = 0, to = 0;
  std::int64_t saved = 0;  ///< ticks
  std::int64_t bytes = 0;
};

/// Time saved per byte.
double worth(const Exchange& exchange) {
  return static_cast<double>(exchange.saved) / static_cast<double>(exchange.bytes);
}

Exchange exchange_between(std::size_t group, const std::vector<BlockChoice>& choices,
                          std::size_t from, std::size_t to) {
  return {.group = group,
          .from = from,
          .to = to,
          .saved = (choices[from].time - choices[to].time).value,
          .bytes = (choices[to].held - choices[from].held).value};
}

/// The lower convex hull of (held, time), from the choice that holds least to the fastest.
std::vector<Exchange> hull_of(std::size_t group, const std::vector<BlockChoice>& choices) {
  std::vector<std::size_t> by_held(choices.size());
  std::iota(by_held.begin(), by_held.end(), std::size_t{0});
  std::ranges::sort(by_held, [&](std::size_t a, std::size_t b) {
    if (choices[a].held != choices[b].held) return choices[a].held < choices[b].held;
    return choices[a].time < choices[b].time;
  });
  std::vector<Exchange> exchanges;
  std::size_t last = by_held.front();
  for (const std::size_t next : by_held) {
    if (choices[next].time >= choices[last].time) continue;  // holds as much or more, and is slower
    Exchange exchange = exchange_between(group, choices, last, next);
    while (!exchanges.empty() && worth(exchanges.back()) <= worth(exchange)) {
      exchange = exchange_between(group, choices, exchanges.back().from, next);
      exchanges.pop_back();
    }
    exchanges.push_back(exchange);
    last = next;
  }
  return exchanges;
}

/// The choice that holds least, and of several the fastest.
std::size_t least_of(const std::vector<BlockChoice>& choices) {
  const auto least = std::ranges::min_element(choices, [](const auto& a, const auto& b) {
    return a.held != b.held ? a.held < b.held : a.time < b.time;
  });
  return static_cast<std::size_t>(least - choices.begin());
}

class Choosing {
 public:
  Choosing(std::span<const AlikeBlocks> groups, Bytes budget) : groups_(groups) {
    for (const AlikeBlocks& group : groups) {
      counts_.emplace_back(group.choices.size(), 0)[least_of(group.choices)] = group.count;
    }
    left_ = (budget - held_by(groups, counts_)).value;
  }
  bool is_possible() const { return left_ >= 0; }

  BlockCounts run() {
    std::vector<Exchange> exchanges;
    for (std::size_t g = 0; g < groups_.size(); ++g)
      for (const Exchange& exchange : hull_of(g, groups_[g].choices)) exchanges.push_back(exchange);
    std::ranges::stable_sort(
        exchanges, [](const Exchange& a, const Exchange& b) { return worth(a) > worth(b); });
    for (const Exchange& exchange : exchanges) take(exchange);
    fill();
    return std::move(counts_);
  }

 private:
  /// For as many blocks as fit.
  void take(const Exchange& exchange) {
    std::vector<int>& counts = counts_[exchange.group];
    const std::int64_t fitting =
        exchange.bytes > 0 ? left_ / exchange.bytes : counts[exchange.from];
    const auto taken = static_cast<int>(std::min<std::int64_t>(counts[exchange.from], fitting));
    counts[exchange.from] -= taken;
    counts[exchange.to] += taken;
    left_ -= taken * exchange.bytes;
  }

  /// Single exchanges, also beside the hulls, the one that saves most first.
  void fill() {
    while (const std::optional<Exchange> exchange = most_saving()) take(*exchange);
  }
  std::optional<Exchange> most_saving() const {
    std::optional<Exchange> most;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const std::vector<BlockChoice>& choices = groups_[g].choices;
      for (std::size_t from = 0; from < choices.size(); ++from) {
        if (counts_[g][from] == 0) continue;
        for (std::size_t to = 0; to < choices.size(); ++to) {
          const Exchange exchange = exchange_between(g, choices, from, to);
          if (exchange.saved > 0 && exchange.bytes <= left_ &&
              (!most || exchange.saved > most->saved))
            most = exchange;
        }
      }
    }
    return most;
  }

  std::span<const AlikeBlocks> groups_;
  BlockCounts counts_;
  std::int64_t left_ = 0;  ///< bytes
};

/// Calls visit(choice, count) for all choices.
template <class Visit>
void for_each_choice(std::span<const AlikeBlocks> groups, const BlockCounts& counts,
                     const Visit& visit) {
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (std::size_t c = 0; c < counts[g].size(); ++c) visit(groups[g].choices[c], counts[g][c]);
}

}  // namespace

std::optional<BlockCounts> fast_choices(std::span<const AlikeBlocks> groups, Bytes budget) {
  Choosing choosing(groups, budget);
  if (!choosing.is_possible()) return std::nullopt;
  return choosing.run();
}

Ticks time_of(std::span<const AlikeBlocks> groups, const BlockCounts& counts) {
  Ticks sum;
  for_each_choice(groups, counts, [&](const BlockChoice& choice, int count) {
    sum += choice.time * std::int64_t{count};
  });
  return sum;
}

Bytes held_by(std::span<const AlikeBlocks> groups, const BlockCounts& counts) {
  Bytes sum;
  for_each_choice(groups, counts, [&](const BlockChoice& choice, int count) {
    sum += choice.held * std::int64_t{count};
  });
  return sum;
}

}  // namespace meshwright
