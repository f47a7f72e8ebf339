/// Unequal shares of the global batch: on clusters with devices of several speeds, data-parallel
/// ranks run different numbers of micro-batches per step, so that all of them end together, as in
/// HetPipe (arXiv 2005.14038) and Whale (arXiv 2011.09208).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// The share of consecutive data-parallel ranks.
struct BatchShare {
  int first = 0, last = 0;  ///< data-parallel ranks, both included
  int microbatches = 1;     ///< of each of them per step
  friend bool operator==(const BatchShare&, const BatchShare&) = default;
};
/// In the order of the ranks, without gaps; empty: equal shares.
using BatchShares = std::vector<BatchShare>;

/// "0-7:12+8-15:4"; "" if empty.
std::string to_text(const BatchShares& shares);
/// In any order of ranks. Empty if invalid; gaps and overlaps are valid here.
std::optional<BatchShares> batch_shares_from_text(std::string_view text);

/// Of the micro-batches of every data-parallel rank.
BatchShares shares_of(std::span<const int> microbatches);

/// Sum over the data-parallel ranks, at most 2^62.
std::int64_t total_microbatches(const BatchShares& shares);
std::int64_t most_microbatches(const BatchShares& shares);

}  // namespace meshwright
