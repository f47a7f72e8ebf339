#include "core/plan/batch_shares.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/index_range.hpp"
#include "core/base/split_at.hpp"
#include "core/plan/plan_numbers.hpp"

namespace meshwright {
namespace {

constexpr char kBetweenShares = '+';
constexpr std::size_t kMostShares = 1 << 16;

}  // namespace

std::string to_text(const BatchShares& shares) {
  std::string text;
  for (const BatchShare& share : shares) {
    if (!text.empty()) text += kBetweenShares;
    text += fmt::format("{}:{}", to_text(IndexRange{share.first, share.last}), share.microbatches);
  }
  return text;
}

std::optional<BatchShares> batch_shares_from_text(std::string_view text) {
  BatchShares shares;
  if (text.empty()) return shares;
  const std::vector<std::string_view> words = split_at(text, kBetweenShares);
  if (words.size() > kMostShares) return std::nullopt;
  shares.reserve(words.size());
  for (std::string_view word : words) {
    const std::optional<IndexRange> ranks = take_index_range(word);
    const std::optional<int> microbatches = number_from_text<int>(word);
    if (!ranks || !microbatches) return std::nullopt;
    shares.push_back({ranks->first, ranks->last, *microbatches});
  }
  std::ranges::stable_sort(shares, {}, &BatchShare::first);
  return shares;
}

BatchShares shares_of(std::span<const int> microbatches) {
  BatchShares shares;
  for (std::size_t i = 0; i < microbatches.size(); ++i) {
    const auto rank = static_cast<int>(i);
    if (shares.empty() || shares.back().microbatches != microbatches[i])
      shares.push_back({rank, rank, microbatches[i]});
    shares.back().last = rank;
  }
  return shares;
}

std::int64_t total_microbatches(const BatchShares& shares) {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  std::int64_t sum = 0;
  for (const BatchShare& share : shares) {
    const std::int64_t ranks = std::int64_t{share.last} - share.first + 1;
    sum = std::min(kMost, sum + std::min(kMost, saturating_product({ranks, share.microbatches})));
  }
  return sum;
}

std::int64_t most_microbatches(const BatchShares& shares) {
  std::int64_t most = 0;
  for (const BatchShare& share : shares) most = std::max<std::int64_t>(most, share.microbatches);
  return most;
}

}  // namespace meshwright
