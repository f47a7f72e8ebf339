#include "executor/training/token_rows.hpp"

#include "executor/operators/sequence_pieces.hpp"

namespace meshwright {

TokenRows token_rows(const TokenText& text, const Strategy& s, const MicrobatchPlace& place) {
  TokenRows rows;
  const ShareStart start_of_rank = share_start_of(s, place.data);
  rows.first_sequence =
      start_of_rank.sequence + (place.microbatch - start_of_rank.microbatch) * s.micro_batch;
  const std::int64_t tokens = text.size();
  for (std::int64_t b = 0; b < s.micro_batch; ++b) {
    const std::int64_t sequence = rows.first_sequence + b;
    const std::int64_t start =
        text.start_of(place.step * s.global_batch + sequence, s.sequence_length);
    for (const SequencePiece& piece : sequence_pieces(s, place.context))
      for (std::int64_t t = 0; t < piece.length; ++t) {
        const std::int64_t position = piece.first_position + t;
        rows.words.push_back(text.at((start + position) % tokens));
        rows.targets.push_back(text.at((start + position + 1) % tokens));
        rows.positions.push_back(static_cast<std::int32_t>(position));
        rows.numbers.push_back(sequence * s.sequence_length + position);
      }
  }
  rows.token_types.assign(rows.words.size(), 0);
  return rows;
}

}  // namespace meshwright
