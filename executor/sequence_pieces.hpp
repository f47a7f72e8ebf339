/// Which positions of every sequence a context rank has.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan.hpp"

namespace meshwright {

/// Neighbouring positions, at rows [first_row, first_row + length) of the rank's part of a
/// sequence.
struct SequencePiece {
  std::int64_t first_row = 0, first_position = 0, length = 0;
  friend bool operator==(const SequencePiece&, const SequencePiece&) = default;
};

/// Of 2 n pieces of a sequence rank i of n has i and 2 n - 1 - i, so that a causal mask leaves all
/// ranks the same work (zig-zag; Llama 3, arXiv 2407.21783, section 3.3.2). Where heads are
/// exchanged, every rank works on whole sequences: it has the i-th of n pieces.
std::vector<SequencePiece> sequence_pieces(const Strategy& strategy, int context_rank);

}  // namespace meshwright
