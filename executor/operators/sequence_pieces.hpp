/// The positions of every sequence that a context rank holds.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/plan.hpp"

namespace meshwright {

/// Consecutive positions, at rows [first_row, first_row + length) of the rank's part of a sequence.
struct SequencePiece {
  std::int64_t first_row = 0, first_position = 0, length = 0;
  friend bool operator==(const SequencePiece&, const SequencePiece&) = default;
};

/// A sequence is split into 2 n chunks, of which rank i of n holds i and 2 n - 1 - i, so that
/// causal masking leaves all ranks with equal work (zig-zag; Llama 3, arXiv 2407.21783,
/// section 3.3.2). With all-to-all context parallelism, whose attention runs on whole sequences,
/// rank i holds the i-th of n chunks.
std::vector<SequencePiece> sequence_pieces(const Strategy& strategy, int context_rank);

}  // namespace meshwright
