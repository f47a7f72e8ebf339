#include "executor/training/token_rows.hpp"

#include "executor/operators/sequence_pieces.hpp"

namespace meshwright {

TokenRows token_rows(const TokenText& text, const Strategy& s, const MicrobatchPlace& place) {
  TokenRows rows;
  rows.first_sequence =
      (place.data * microbatch_count(s) + place.microbatch) * std::int64_t{s.micro_batch};
  for (std::int64_t b = 0; b < s.micro_batch; ++b)
    for (const SequencePiece& piece : sequence_pieces(s, place.context))
      for (std::int64_t t = 0; t < piece.length; ++t) {
        const std::int64_t position = piece.first_position + t;
        const std::int64_t number = (rows.first_sequence + b) * s.sequence_length + position;
        const auto at =
            static_cast<std::size_t>(place.step * s.global_batch * s.sequence_length + number);
        rows.words.push_back(text.words[at % text.words.size()]);
        rows.targets.push_back(text.words[(at + 1) % text.words.size()]);
        rows.positions.push_back(static_cast<std::int32_t>(position));
        rows.numbers.push_back(number);
      }
  rows.token_types.assign(rows.words.size(), 0);
  return rows;
}

}  // namespace meshwright
